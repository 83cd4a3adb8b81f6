//! Where an event stands, from where its effects stand (D7).

use crate::effect::{EffectState, SkipReason};
use crate::event::EventStatus;

/// Does a person have to look at the event as a whole, whatever its effects say?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// No.
    Free,
    /// Yes: its key or plan could not be derived, or an order guard asks.
    Review,
}

impl EventStatus {
    /// The status that one effect gives its event.
    pub const fn of_effect(state: EffectState, skip: Option<SkipReason>) -> EventStatus {
        match (state, skip) {
            (EffectState::Skipped, Some(SkipReason::Stale)) => EventStatus::Stale,
            (EffectState::Done | EffectState::Skipped, _) => EventStatus::Completed,
            (EffectState::Pending, _) => EventStatus::Pending,
            (EffectState::Claimed, _) => EventStatus::InProgress,
            (EffectState::Dead, _) => EventStatus::Dead,
            (EffectState::Uncertain, _) => EventStatus::NeedsReview,
        }
    }

    /// The status of an event that has these effects; without any there is nothing left to do. An event that
    /// waits for a person says so first.
    pub fn of_effects(
        effects: impl IntoIterator<Item = (EffectState, Option<SkipReason>)>,
        hold: Hold,
    ) -> EventStatus {
        let worst = effects
            .into_iter()
            .map(|(state, skip)| EventStatus::of_effect(state, skip))
            .max();
        match hold {
            Hold::Review => EventStatus::NeedsReview,
            Hold::Free => worst.unwrap_or(EventStatus::Completed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_well_as_the_worst_of_its_effects() {
        // D7: needs_review > dead > in_progress > pending > stale > completed.
        let ranked = [
            (EffectState::Done, None, EventStatus::Completed),
            (
                EffectState::Skipped,
                Some(SkipReason::Stale),
                EventStatus::Stale,
            ),
            (EffectState::Pending, None, EventStatus::Pending),
            (EffectState::Claimed, None, EventStatus::InProgress),
            (EffectState::Dead, None, EventStatus::Dead),
            (EffectState::Uncertain, None, EventStatus::NeedsReview),
        ];
        for (place, (state, skip, status)) in ranked.iter().enumerate() {
            let better = ranked[..place]
                .iter()
                .map(|(state, skip, _)| (*state, *skip));
            let effects = better.chain([(*state, *skip)]);
            assert_eq!(EventStatus::of_effects(effects, Hold::Free), *status);
        }
    }

    #[test]
    fn completed_means_done_or_skipped_for_a_reason() {
        let skipped = (EffectState::Skipped, Some(SkipReason::Operator));
        let status = EventStatus::of_effects([(EffectState::Done, None), skipped], Hold::Free);
        assert_eq!(status, EventStatus::Completed);
        assert_eq!(
            EventStatus::of_effects([], Hold::Free),
            EventStatus::Completed
        );
        assert_eq!(
            EventStatus::of_effects([], Hold::Review),
            EventStatus::NeedsReview
        );
    }
}
