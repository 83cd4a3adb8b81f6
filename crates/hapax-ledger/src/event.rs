//! What is said of an event: where its key came from, how a delivery ended, where it stands.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $word:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $code,)+ }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word users see.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The number stores keep.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The value with this number.
            pub fn from_code(code: u8) -> Option<$name> {
                Self::ALL.iter().copied().find(|value| value.code() == code)
            }

            /// The value with this word.
            pub fn from_word(word: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}
pub(crate) use words;

words!(
    /// The rung of the ladder on which an event's key was found.
    KeyOrigin {
        /// The fields that the source's config names.
        Business = 0, "business";
        /// The provider's own stable event id.
        Provider = 1, "provider";
        /// Fields that the preset puts together where the provider has no id.
        Composed = 2, "composed";
        /// The hash of the raw body.
        Body = 3, "body";
    }
);

words!(
    /// How one HTTP request to the inbox ended. (Refused requests leave no row, so they have no word here.)
    DeliveryOutcome {
        /// It brought a new event.
        Accepted = 0, "accepted";
        /// Its event was known.
        Duplicate = 1, "duplicate";
        /// Authentic, but key or plan could not be derived; kept for review.
        FailedValidation = 2, "failed_validation";
    }
);

words!(
    /// Where an event stands, best first: an event is as well as the worst of its effects (D7).
    EventStatus {
        /// Every planned effect is done, or skipped with a reason.
        Completed = 0, "completed";
        /// An order guard found it older than what was already applied.
        Stale = 1, "stale";
        /// Something waits to be sent.
        Pending = 2, "pending";
        /// Something is being sent.
        InProgress = 3, "in_progress";
        /// Something was given up.
        Dead = 4, "dead";
        /// A person has to decide.
        NeedsReview = 5, "needs_review";
    }
);

impl EventStatus {
    /// Has everything come to an end, good or bad? What is not settled is never reaped, and its identity holds (I1).
    pub const fn is_settled(self) -> bool {
        match self {
            EventStatus::Completed | EventStatus::Stale | EventStatus::Dead => true,
            EventStatus::Pending | EventStatus::InProgress | EventStatus::NeedsReview => false,
        }
    }
}
