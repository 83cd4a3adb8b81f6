//! Steps with a name: announced, timed, and summed up at the end.

use std::process::ExitCode;
use std::time::Duration;

use crate::clock::Stopwatch;

/// A run of steps. A failed step does not keep the next from running: one run shows everything that is wrong.
#[derive(Debug)]
pub(crate) struct Steps {
    watch: Stopwatch,
    done: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: String,
    took: Duration,
    failure: Option<String>,
}

impl Steps {
    /// No step yet; the total time runs from here.
    pub(crate) fn start() -> Steps {
        Steps {
            watch: Stopwatch::start(),
            done: Vec::new(),
        }
    }

    /// Runs one step.
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> anyhow::Result<()>) {
        self.attempt(name, work);
    }

    /// Runs one step whose result others need.
    pub(crate) fn attempt<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> Option<T> {
        println!("==> {name}");
        let watch = Stopwatch::start();
        let result = work();
        let took = watch.elapsed();
        let failure = result.as_ref().err().map(|error| format!("{error:#}"));
        match &failure {
            None => println!("    ok: {name}, {}", seconds(took)),
            Some(failure) => println!("    FAILED: {name}, {}: {failure}", seconds(took)),
        }
        self.done.push(Step {
            name: name.to_owned(),
            took,
            failure,
        });
        result.ok()
    }

    /// Prints the summary and says how the process should end.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\nSummary");
        for step in &self.done {
            let word = if step.failure.is_none() {
                "ok"
            } else {
                "FAILED"
            };
            println!("  {word:<7} {:<24} {:>9}", step.name, seconds(step.took));
        }
        let failed = self.done.iter().filter(|step| step.failure.is_some());
        let total = seconds(self.watch.elapsed());
        match failed.count() {
            0 => {
                println!("All {} steps passed in {total}.", self.done.len());
                ExitCode::SUCCESS
            }
            failed => {
                println!("{failed} of {} steps failed; {total}.", self.done.len());
                ExitCode::FAILURE
            }
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
