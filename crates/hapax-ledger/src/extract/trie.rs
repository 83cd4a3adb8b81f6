//! The wanted paths as a trie, walked together with the parser.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{ExtractError, malformed};

/// The root; its children are the first parts of all paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    /// The name as an array index, if it is one.
    index: Option<usize>,
    /// The field that ends here.
    field: Option<usize>,
    children: Vec<Node>,
}

impl Trie {
    /// Adds the path of a field.
    pub(super) fn insert(&mut self, segments: &[String], field: usize) {
        insert(&mut self.children, segments, field);
    }

    /// Does no field ask for the body?
    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The bytes at the end of each path. Of repeated members the last one counts, wholly: what an earlier one
    /// held is forgotten, as most parsers do.
    pub(super) fn walk<'a>(
        &self,
        text: &'a str,
        fields: usize,
    ) -> Result<Vec<Option<&'a str>>, ExtractError> {
        let mut found = vec![None; fields];
        let mut parser = serde_json::Deserializer::from_str(text);
        let seed = Level {
            nodes: &self.children,
            found: &mut found,
        };
        seed.deserialize(&mut parser)
            .map_err(|error| malformed(&error))?;
        parser.end().map_err(|error| malformed(&error))?;
        Ok(found)
    }
}

fn insert(nodes: &mut Vec<Node>, segments: &[String], field: usize) {
    let Some((name, rest)) = segments.split_first() else {
        return;
    };
    let place = nodes
        .iter()
        .position(|node| node.name == *name)
        .unwrap_or_else(|| {
            // `01` is a name but not an index, so that one element has one path.
            let index = name
                .parse::<usize>()
                .ok()
                .filter(|index| index.to_string() == *name);
            nodes.push(Node {
                name: name.clone(),
                index,
                field: None,
                children: Vec::new(),
            });
            nodes.len() - 1
        });
    if rest.is_empty() {
        nodes[place].field = Some(field);
    } else {
        insert(&mut nodes[place].children, rest, field);
    }
}

fn forget(node: &Node, found: &mut [Option<&str>]) {
    if let Some(field) = node.field {
        found[field] = None;
    }
    for child in &node.children {
        forget(child, found);
    }
}

/// One level of the document against one level of the trie.
struct Level<'t, 'f, 'a> {
    nodes: &'t [Node],
    found: &'f mut Vec<Option<&'a str>>,
}

impl<'a> Level<'_, '_, 'a> {
    /// The value of a node that was met.
    fn enter<E: serde::de::Error>(&mut self, node: &Node, raw: &'a RawValue) -> Result<(), E> {
        if let Some(field) = node.field {
            self.found[field] = Some(raw.get());
        }
        if !node.children.is_empty() && raw.get().starts_with(['{', '[']) {
            let mut parser = serde_json::Deserializer::from_str(raw.get());
            let seed = Level {
                nodes: &node.children,
                found: self.found,
            };
            seed.deserialize(&mut parser).map_err(E::custom)?;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let nodes = self.nodes;
        while let Some(met) = map.next_key_seed(Name(nodes))? {
            let Some(node) = met else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            forget(node, self.found);
            if node.field.is_some() {
                // The bytes are wanted, and perhaps parts of them too: a second look at this subtree only.
                let raw = map.next_value::<&RawValue>()?;
                self.enter(node, raw)?;
            } else {
                map.next_value_seed(Level {
                    nodes: &node.children,
                    found: self.found,
                })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let nodes = self.nodes;
        for place in 0.. {
            let more = match nodes.iter().find(|node| node.index == Some(place)) {
                None => elements.next_element::<IgnoredAny>()?.map(drop),
                Some(node) if node.field.is_some() => {
                    let raw = elements.next_element::<&RawValue>()?;
                    raw.map(|raw| self.enter(node, raw)).transpose()?
                }
                Some(node) => elements.next_element_seed(Level {
                    nodes: &node.children,
                    found: self.found,
                })?,
            };
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A member's name, looked up among the children.
struct Name<'t>(&'t [Node]);

impl<'de, 't> DeserializeSeed<'de> for Name<'t> {
    type Value = Option<&'t Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'t> Visitor<'_> for Name<'t> {
    type Value = Option<&'t Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|node| node.name == name))
    }
}
