//! The `hapax` binary: hands over to the command line.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    hapax::cli::main()
}
