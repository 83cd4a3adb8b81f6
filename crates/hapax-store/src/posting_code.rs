//! How the outbox's lists, maps and frozen deliveries are kept: as text and bytes that both databases can hold.

use std::collections::BTreeMap;

use hapax_ledger::effect::Repeat;
use hapax_ledger::id::EndpointId;
use hapax_ledger::order::PlannedOrder;
use hapax_ledger::time::Time;
use serde_json::{Value, json};

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::LaterDelivery;
use crate::order_code::{life_code, life_step};
use crate::posting::Template;

/// Bytes of one delivery that follows its message: an endpoint, and how many attempts.
pub(crate) const LATER_BYTES: usize = 20;

/// A list of texts.
pub(crate) fn from_texts(texts: &[String]) -> String {
    Value::from(texts).to_string()
}

/// The list that was kept so.
pub(crate) fn to_texts(kept: &str) -> Vec<String> {
    serde_json::from_str(kept).unwrap_or_default()
}

/// A map of texts.
pub(crate) fn from_map(map: &BTreeMap<String, String>) -> String {
    json!(map).to_string()
}

/// The map that was kept so.
pub(crate) fn to_map(kept: &str) -> BTreeMap<String, String> {
    serde_json::from_str(kept).unwrap_or_default()
}

/// Deliveries that follow.
pub(crate) fn from_later(later: &[LaterDelivery]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(later.len() * LATER_BYTES);
    for one in later {
        bytes.extend_from_slice(&one.endpoint.bytes());
        bytes.extend_from_slice(&one.attempts_max.to_be_bytes());
    }
    bytes
}

/// The deliveries that were kept so.
pub(crate) fn to_later(kept: &[u8]) -> Vec<LaterDelivery> {
    let (each, _) = kept.as_chunks::<LATER_BYTES>();
    let later = each.iter().filter_map(|one| {
        let (endpoint, attempts) = one.split_first_chunk::<16>()?;
        Some(LaterDelivery {
            endpoint: EndpointId::from_bytes(*endpoint),
            attempts_max: u32::from_be_bytes(attempts.try_into().ok()?),
        })
    });
    later.collect()
}

/// What deliveries have in common.
pub(crate) fn from_template(template: &Template) -> String {
    let order = template.order.as_ref().map(|order| {
        json!({
            "entity": order.entity,
            "serial": order.serial,
            "version": order.version,
            "lifeStep": life_code(order.life_step),
            "snapshot": order.snapshot,
            "review": order.review,
        })
    });
    let template = json!({
        "key": template.key,
        "repeat": template.repeat.code(),
        "notBefore": template.not_before.micros(),
        "order": order,
    });
    template.to_string()
}

/// What was kept so.
pub(crate) fn to_template(kept: &str) -> Result<Template, StoreError> {
    let broken = || {
        StoreError::new(
            StoreErrorKind::Corrupt,
            "what is kept of a message's deliveries cannot be read",
        )
    };
    let kept: Value = serde_json::from_str(kept).map_err(|error| broken().caused_by(error))?;
    template(&kept).ok_or_else(broken)
}

fn template(kept: &Value) -> Option<Template> {
    let code = |value: &Value| u8::try_from(value.as_u64()?).ok();
    let order = match &kept["order"] {
        Value::Null => None,
        order => Some(PlannedOrder {
            entity: order["entity"].as_str()?.to_owned(),
            serial: order["serial"].as_bool()?,
            version: order["version"].as_str().map(str::to_owned),
            life_step: life_step(code(&order["lifeStep"])?.into()),
            snapshot: order["snapshot"].as_bool()?,
            review: order["review"].as_bool()?,
        }),
    };
    Some(Template {
        key: kept["key"].as_str()?.to_owned(),
        repeat: Repeat::from_code(code(&kept["repeat"])?)?,
        not_before: Time::from_micros(kept["notBefore"].as_i64()?),
        order,
    })
}

#[cfg(test)]
mod tests {
    use hapax_ledger::id::RawId;
    use hapax_ledger::order::LifeStep;

    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let order = PlannedOrder {
            entity: "e\0".into(),
            serial: true,
            version: Some("2".into()),
            life_step: LifeStep::Ends,
            snapshot: false,
            review: true,
        };
        for order in [None, Some(order)] {
            let template = Template {
                key: "k\"\0".into(),
                repeat: Repeat::Keyed,
                not_before: Time::from_secs(7),
                order,
            };
            let kept = from_template(&template);
            assert_eq!(to_template(&kept).ok(), Some(template));
        }
        assert!(to_template("{}").is_err());
        let later = [1, 2].map(|n| LaterDelivery {
            endpoint: EndpointId(RawId::new(Time::from_secs(1), 0, n)),
            attempts_max: n as u32,
        });
        let kept = from_later(&later);
        assert_eq!(kept.len(), 2 * LATER_BYTES);
        assert_eq!(to_later(&kept), later);
        let texts = ["".to_owned(), "a\0\"".to_owned()];
        assert_eq!(to_texts(&from_texts(&texts)), texts);
        let map = BTreeMap::from([("a".to_owned(), "\0".to_owned())]);
        assert_eq!(to_map(&from_map(&map)), map);
    }
}
