//! `cli.md`: the help of every command, as the program prints it.

use std::path::Path;

use super::check;
use crate::program::run;

#[test]
fn the_commands_are_described_as_they_are() {
    let mut page = "# Command line\n\nMade by `cargo xt reference` from `hapax COMMAND --help`. Data goes to stdout, talk to stderr; exit \
                    codes mean the same for every command.\n"
        .to_owned();
    describe(&mut Vec::new(), &mut page);
    check("cli.md", &page);
}

/// A command, and those below it.
fn describe(command: &mut Vec<String>, page: &mut String) {
    let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.push("--help");
    let help = run(Path::new(env!("CARGO_MANIFEST_DIR")), &words).expect_exit(0);
    let title = ["hapax"]
        .into_iter()
        .chain(command.iter().map(String::as_str));
    let title = title.collect::<Vec<_>>().join(" ");
    let lines = help
        .stdout
        .lines()
        .map(|line| format!("{}\n", line.trim_end()));
    let help: String = lines.collect();
    page.push_str(&format!(
        "\n## `{title}`\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    for below in commands_in(&help) {
        command.push(below);
        describe(command, page);
        command.pop();
    }
}

/// The names below `Commands:`.
fn commands_in(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // A name stands two spaces in; what is further in goes on with the line before.
    let names = lines.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}
