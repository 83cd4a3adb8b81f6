//! What every store must do, as checks that any store can be put through.
//!
//! One file per subject; each check is a function that takes an empty store. [`crate::conformance_tests`] makes a test of each,
//! given a function that finds an empty store for a check. [`differential`] runs random commands on a store and on the
//! model side by side. Checks name the invariants they keep (`INVARIANTS.md`), and use no clock but their own.

pub mod accept;
pub mod after;
pub mod apps;
pub mod atomic;
pub mod caps;
pub mod catalog;
pub mod commands;
pub mod conflicts;
pub mod database;
pub mod differential;
pub mod effect_reads;
pub mod effects;
pub mod erasure;
pub mod evidence;
pub mod examples;
pub mod expiry;
pub mod fan_out;
pub mod history;
pub mod key_life;
pub mod keys;
pub mod lanes;
pub mod life;
pub mod lists;
pub mod messages;
pub mod operator;
pub mod order;
pub mod own;
pub mod polls;
pub mod pooler;
pub mod posts;
pub mod publisher;
pub mod reads;
pub mod reap;
pub mod resends;
pub mod reviews;
pub mod sample;
pub mod secrets;
pub mod tamper;
pub mod tidings;
pub mod worker;

/// Makes a test of every check. `$run` is the absolute path of a function that calls what it is given with an empty store:
/// `fn run<F, Fut>(check: F) where F: FnOnce(Arc<dyn Store>) -> Fut, Fut: Future<Output = ()>`.
/// With `effects` before it, the checks that are about effects: `F: FnOnce(Arc<dyn Store>, Dial) -> Fut`, with a store whose leases
/// end by the dial.
#[macro_export]
macro_rules! conformance_tests {
    ($run:path) => {
        $crate::conformance_tests!(@ $run; accept:
            a_new_event_is_stored_whole_and_read_back,
            the_same_key_again_is_a_duplicate_with_the_same_id,
            another_body_under_a_key_is_a_conflict_and_visible,
            fields_that_may_vary_make_no_conflict,
            later_bodies_are_compared_with_the_first,
            sources_do_not_share_keys,
            what_cannot_be_planned_is_kept_for_review,
            a_batch_is_answered_in_its_order,
            a_key_twice_in_one_arrival_is_one_event,
            two_hundred_at_once_make_one_event,
            batches_that_cross_make_one_event_per_key,
            an_arrival_without_events_stores_nothing,
            any_text_and_any_bytes_come_back_as_they_went,
        );
        $crate::conformance_tests!(@ $run; apps:
            the_catalogue_comes_back_whole,
            a_change_needs_the_latest_state,
            a_uid_belongs_to_one_that_is_there,
            a_deleted_types_name_is_free,
            a_deleted_app_takes_its_endpoints_along,
            a_change_of_the_catalogue_is_made_once_per_request,
            changes_come_in_parts,
            racing_changes_come_one_after_the_other,
            an_endpoint_is_marked,
            what_is_deleted_is_forgotten_after_a_while,
        );
        $crate::conformance_tests!(@ $run; caps:
            deliveries_beyond_the_limit_only_move_the_last_one,
            conflicts_beyond_the_limit_are_still_counted,
        );
        $crate::conformance_tests!(@ $run; catalog:
            tokens_come_back_whole_and_newest_first,
            a_name_belongs_to_one_token_that_counts,
            racing_tokens_do_not_share_a_name,
            the_last_use_only_moves_forward,
            only_tokens_that_count_are_live,
            tokens_that_ended_are_forgotten_and_their_records_are_not,
            many_tokens_are_forgotten_step_by_step,
            a_change_is_made_once_per_request,
            the_audit_log_is_read_by_page_and_filter,
            replays_come_back_whole_and_newest_first,
            a_replay_is_carried_on_from_where_it_stands,
            a_replay_can_be_stopped,
            what_a_replay_finds_out_is_kept,
        );
        $crate::conformance_tests!(@ $run; expiry:
            a_key_is_held_until_its_window_ends_and_not_a_moment_longer,
            an_expired_key_is_taken_again_before_anything_is_reaped,
            a_late_sighting_keeps_the_key_through_the_retries_that_follow,
            a_clock_that_jumps_back_brings_no_end_nearer,
            what_waits_for_a_person_never_expires,
            what_waits_for_a_person_still_moves_its_end,
        );
        $crate::conformance_tests!(@ $run; life:
            a_commit_goes_through,
            the_first_admin_token_holds,
            counts_are_exact_and_no_key_is_held_twice,
        );
        $crate::conformance_tests!(@ $run; reads:
            ids_that_were_never_given_find_nothing,
            keys_that_were_never_seen_are_not_sighted,
            pages_meet_without_gap_or_overlap_both_ways,
            a_clock_that_jumped_back_hides_nothing_from_lists,
            limits_are_kept_within_their_bounds,
            every_filter_narrows_to_what_fits,
            a_text_in_a_key_is_found_letter_by_letter,
            what_waits_for_a_person_is_listed_in_pages,
            times_include_their_beginning_and_exclude_their_end,
            a_filtered_list_goes_on_after_its_pages,
        );
        $crate::conformance_tests!(@ $run; reap:
            bytes_go_first_and_the_identity_last,
            what_waits_for_a_person_is_never_reaped,
            steps_say_more_until_all_is_gone,
            a_reaped_key_is_free_and_a_taken_one_is_not,
            a_duplicate_is_known_after_its_bytes_are_gone,
        );
        $crate::conformance_tests!(@ $run; secrets:
            a_secret_is_kept_once_for_each_expectation,
            a_place_has_one_secret,
            the_first_that_is_held_stays,
            secrets_are_sealed_anew_and_listed_by_place,
        );
    };
    (effects $run:path) => {
        $crate::conformance_tests!(@ $run; effects:
            effects_are_planned_with_their_event,
            a_claim_is_held_by_one_until_its_lease_ends,
            a_settled_effect_is_done_for_good,
            a_late_settlement_changes_nothing_and_is_kept,
            a_lost_worker_leaves_what_the_class_says,
            a_retry_waits_for_its_time_and_an_end_is_an_end,
            the_earliest_come_first,
            a_repeatable_effect_may_be_born_claimed,
            two_events_share_one_effect,
            names_do_not_share_keys,
            a_claim_can_be_extended_released_or_skipped,
            an_unknown_effect_is_said_to_be_unknown,
            an_effects_key_outlives_every_event_that_calls_for_it,
            a_dead_effect_does_not_let_go_of_the_others,
            racing_claims_never_share_an_effect,
        );
        $crate::conformance_tests!(@ $run; lanes:
            a_claim_takes_from_the_lanes_it_names_and_no_more_than_their_room,
            a_look_names_the_lanes_that_have_something_to_do,
            a_look_goes_on_after_a_lane,
            a_full_lane_hides_no_other,
            a_clock_that_is_off_delays_nothing,
            a_claim_says_when_the_next_is_due,
            a_lone_node_looks_after_every_shard,
        );
        $crate::conformance_tests!(@ $run; after:
            what_comes_after_waits_until_all_before_it_is_done,
            a_skipped_one_lets_the_next_go_and_a_retry_does_not,
            a_dead_one_blocks_what_comes_after_until_it_is_revived,
            a_repeat_revives_only_where_it_may,
            an_uncertain_one_blocks_what_comes_after_until_it_is_resolved,
            a_shared_effect_counts_for_both_events,
            what_waits_is_not_born_claimed,
        );
        $crate::conformance_tests!(@ $run; order:
            one_at_a_time_in_the_order_of_acceptance,
            unrelated_entities_never_wait_for_each_other,
            an_uncertain_one_blocks_its_entity_until_it_is_resolved,
            an_older_version_is_stale_and_an_equal_one_is_not,
            a_retry_is_measured_by_the_others_only,
            after_the_end_a_person_decides,
            a_reopened_entity_goes_on,
            a_free_order_waits_for_nobody,
            going_back_behind_a_later_one_needs_a_person,
            a_revived_one_goes_back_to_its_place,
            one_let_go_waits_for_a_later_one_under_way,
            a_review_condition_asks_before_the_start,
            a_worker_can_ask_for_a_person,
            a_reaped_entity_begins_anew,
        );
        $crate::conformance_tests!(@ $run; evidence:
            what_was_said_is_kept_with_the_attempt,
            a_settlement_that_is_said_again_is_no_late_one,
            an_effect_says_how_its_latest_attempt_ended,
            a_snapshot_is_frozen_unless_the_effect_converges,
            a_rescue_names_what_it_freed,
            what_is_uncertain_is_resolved_by_a_probe_or_a_person,
            an_unknown_effect_cannot_be_resolved,
            a_stricter_class_holds_back_what_may_have_been_applied,
        );
        $crate::conformance_tests!(@ $run; effect_reads:
            effects_are_listed_by_every_filter,
            pages_of_effects_meet_both_ways,
            effects_that_have_not_ended_well_are_counted,
            parcels_come_in_the_order_asked,
            an_effect_names_the_events_that_call_for_it,
        );
        $crate::conformance_tests!(@ $run; commands:
            facts_say_what_a_verdict_depends_on,
            a_retry_carries_out_what_is_not_done,
            what_waits_for_its_time_is_due_at_once,
            a_replay_sends_nothing_that_is_done_unless_it_is_forced,
            a_forced_effect_holds_up_what_comes_after_it,
            a_reconcile_sends_converging_effects_with_the_snapshot,
            an_operator_resolves_what_is_uncertain,
            a_command_on_an_outdated_verdict_is_refused,
            what_cannot_be_done_is_refused,
            a_stricter_class_of_the_config_counts,
            a_dry_run_changes_nothing,
            a_request_is_carried_out_once,
            racing_commands_leave_one_record_each,
            what_is_under_way_is_left_alone,
        );
        $crate::conformance_tests!(@ $run; erasure:
            what_is_erased_is_gone_and_still_known,
            what_waits_for_erased_bytes_is_skipped,
            an_erased_event_keeps_no_bytes_that_come_later,
            erasing_is_rehearsed_and_repeated,
            the_ledger_goes_between_bytes_and_identity,
            a_shared_effect_keeps_its_attempts_while_one_event_tells_of_them,
        );
        $crate::conformance_tests!(@ $run; reviews:
            a_released_event_is_planned,
            a_released_event_without_effects_is_completed,
            what_was_planned_at_a_release_holds_its_key,
            what_came_after_the_end_goes_ahead_when_released,
            what_a_later_one_overtook_goes_ahead_when_released,
            what_is_stale_is_sent_when_it_is_forced,
            what_a_worker_held_is_claimable_when_released,
            a_dismissed_event_comes_to_nothing,
        );
        $crate::conformance_tests!(@ $run; conflicts:
            deliveries_have_numbers_and_conflicts_have_bytes,
            a_conflict_is_acknowledged_once,
            a_conflict_is_promoted_to_an_event_of_its_own,
            a_delivery_keeps_its_number_beyond_the_limit,
            what_was_decided_goes_with_its_event_and_the_log_stays,
        );
        $crate::conformance_tests!(@ $run; own:
            a_claim_of_ones_own_is_started,
            what_is_done_is_told_again,
            what_failed_is_claimed_again,
            a_claim_of_ones_own_is_extended,
            a_lost_claim_is_read_by_its_class,
            an_uncertain_report_needs_a_person_for_once,
            the_stricter_class_of_two_claims_counts,
            a_claim_of_ones_own_joins_an_event,
            two_events_share_an_effect_of_ones_own,
            a_claim_of_ones_own_frees_nothing_else,
            what_hapax_sends_is_not_yours,
            racing_claims_of_ones_own_make_one_effect,
            an_effect_of_ones_own_is_reaped_with_its_event,
        );
        $crate::conformance_tests!(@ $run; keys:
            an_answer_is_given_again_byte_by_byte,
            a_key_is_read_back_whole,
            another_request_under_the_key_is_refused_throughout,
            a_running_request_is_in_progress_until_it_is_lost,
            a_lost_run_is_read_by_the_routes_rule,
            a_late_answer_counts_until_somebody_ran_again,
            an_ending_in_doubt_is_said_again,
            a_released_key_is_free_and_its_fence_rises,
            an_answer_that_was_not_kept_is_said_to_be,
            a_new_run_leaves_no_old_answer,
            two_hundred_at_once_run_once,
            a_key_that_was_never_given_is_nobodys,
        );
        $crate::conformance_tests!(@ $run; key_life:
            an_answer_expires_is_said_to_have_and_is_forgotten,
            what_is_over_is_reaped_and_nothing_else,
            many_keys_are_reaped_in_steps,
            an_unknown_outcome_is_resolved_both_ways,
            only_what_is_unknown_is_resolved,
            what_is_known_of_one_run_does_not_resolve_the_next,
            the_sweep_finds_what_was_lost,
            the_sweep_finds_what_was_lost_after_the_clock_was_set_back,
            pages_of_keys_meet_both_ways,
            keys_are_listed_by_every_filter,
            keys_are_listed_as_they_stand_now,
            a_repeatable_route_runs_again_after_every_unknown_end,
            a_claim_that_was_in_doubt_is_known_again,
        );
        $crate::conformance_tests!(@ $run; messages:
            a_message_comes_back_whole,
            a_plan_by_an_old_catalogue_is_refused,
            a_repeated_message_is_the_same_message,
            a_delivery_may_be_born_claimed,
            numbers_rise_without_a_gap,
            a_count_goes_with_its_last_message,
            racing_messages_are_numbered_once_each,
            numbers_follow_the_order_of_delivery,
            what_is_no_message_is_refused,
            messages_are_listed_by_every_filter,
            pages_of_messages_meet_both_ways,
            messages_are_gone_through_from_the_oldest_on,
            what_was_said_goes_with_the_message,
        );
        $crate::conformance_tests!(@ $run; examples:
            an_example_comes_back_as_one,
            an_example_is_listed_for_its_endpoint_and_for_no_other,
            an_example_is_polled_at_its_endpoint_and_at_no_other,
            an_example_that_goes_to_others_is_refused,
        );
        $crate::conformance_tests!(@ $run; fan_out:
            a_large_set_is_made_in_steps,
            what_follows_is_like_the_first,
            a_clock_that_is_off_delays_no_delivery,
            a_message_is_not_completed_before_all_is_made,
            racing_steps_make_each_delivery_once,
            deliveries_go_out_while_others_are_made,
            an_effect_of_ones_own_counts_for_a_message,
            what_follows_keeps_its_order,
            what_is_still_to_be_made_is_never_reaped,
            what_is_there_is_not_made_again,
        );
        $crate::conformance_tests!(@ $run; polls:
            messages_are_given_once_and_in_order,
            a_message_is_not_given_before_its_time,
            a_message_whose_time_came_is_given_to_whoever_has_read_on,
            turns_are_never_given_behind_one_that_was_read,
            a_message_that_is_stored_late_is_given_behind_what_was_read,
            more_turns_than_are_given_in_one_step_all_come,
            racing_polls_give_each_turn_once,
            what_does_not_fit_is_passed_by_for_good,
            a_poll_may_begin_at_a_time,
            a_consumer_goes_on_where_it_stands,
            a_consumer_that_has_read_less_is_told,
            a_consumer_goes_where_it_is_sent_once_per_request,
            consumers_are_so_many_and_are_forgotten,
        );
        $crate::conformance_tests!(@ $run; posts:
            deliveries_are_listed_by_every_filter,
            pages_of_deliveries_meet_both_ways,
            attempts_are_listed_latest_first,
            attempts_are_tallied_by_the_hour,
            attempts_are_summed_by_application,
            racing_attempts_are_all_tallied,
            what_waits_is_counted,
        );
        $crate::conformance_tests!(@ $run; tidings:
            what_is_done_to_an_endpoint_is_told,
            a_warning_is_told_once,
            many_endpoints_are_marked_at_once,
            the_ends_of_deliveries_are_told,
        );
        $crate::conformance_tests!(@ $run; resends:
            a_command_may_be_limited_to_some_effects,
            a_skipped_delivery_comes_back_if_it_is_named,
            a_missing_delivery_is_planned,
            a_message_is_looked_up_for_one_endpoint,
            deliveries_of_an_expired_message_are_not_made_again,
            a_reaped_message_is_not_delivered,
        );
    };
    (@ $run:path; $subject:ident: $($check:ident,)+) => {
        mod $subject {
            $(
                #[test]
                fn $check() {
                    $run($crate::conformance::$subject::$check);
                }
            )+
        }
    };
}
