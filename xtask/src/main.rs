//! All automation of this repository, in Rust, behind `cargo xt`.

mod bench;
mod check;
mod ci;
mod cli;
mod clock;
mod entropy;
mod explore;
mod load;
mod loopback;
mod pages;
mod postgres;
mod reference;
mod schema;
mod sdk;
mod steps;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::run(cli::Xt::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo xt: {error:#}");
            ExitCode::FAILURE
        }
    }
}
