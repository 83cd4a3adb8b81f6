//! What users see of the program, in one binary.

mod cli_check;
mod cli_effects;
mod cli_events;
mod cli_init;
mod cli_serve;
mod cli_usage;
mod cli_verify;
mod config;
mod config_effect_problems;
mod config_effects;
mod config_problems;
mod config_secrets;
mod effects;
mod errors;
mod faults;
mod guard;
mod guide;
mod inbox;
mod operate;
mod plan;
mod program;
mod provisioning;
mod sender;
mod support;
