//! Containers of a seed: indexing policies and computed properties, as queries and in plain code.

use crate::random::Random;
use crate::world::key_at_pk;
use model::policy::{CompositeIndex, ComputedProperty, IndexingPolicy, SpatialIndex, SpatialType};
use model::{ContainerDraft, DefaultTtl, PartitionKeyKind, RequestFault};
use plan::query::Query;
use serde_json::{Map, Value as Json};

/// Which computed properties a container has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Computed {
    None,
    One,
    /// Other values under the same names, and one name less.
    Other,
}

impl Computed {
    pub(super) fn draw(random: &mut Random) -> Computed {
        *random.pick(&[Computed::None, Computed::One, Computed::Other])
    }

    /// Names and queries. Some names are those of document members.
    pub(super) fn queries(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Computed::None => &[],
            Computed::One => &[
                ("cp_g", "SELECT VALUE UPPER(c.g) FROM c"),
                ("cp_n", "SELECT VALUE c.n + 1 FROM c"),
                ("cp_o", "SELECT VALUE {\"x\": c.o.x, \"n\": c.n} FROM c"),
                ("missing", "SELECT VALUE c.n >= 2 FROM c"),
                ("b", "SELECT VALUE c.o FROM c"),
            ],
            Computed::Other => &[
                ("cp_g", "SELECT VALUE CONCAT(c.g, \"y\") FROM c"),
                ("cp_n", "SELECT VALUE c.n + 2 FROM c"),
                ("cp_o", "SELECT VALUE {\"x\": c.a} FROM c"),
                ("missing", "SELECT VALUE c.n < 0 FROM c"),
            ],
        }
    }

    /// The members of a document that queries see.
    pub(super) fn seen(self, body: &Map<String, Json>) -> Map<String, Json> {
        let text = body.get("g").and_then(Json::as_str);
        let number = body.get("n");
        let size = number.and_then(Json::as_f64);
        let plus = |more: i64| match number?.as_i64() {
            Some(whole) => Some(Json::from(whole + more)),
            None => Some(Json::from(size? + more as f64)),
        };
        let object = |members: [(&str, Option<&Json>); 2]| -> Json {
            let members =
                members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
            Json::Object(members.collect())
        };
        let inner = body.get("o").and_then(|inner| inner.get("x"));
        let values: Vec<(&str, Option<Json>)> = match self {
            Computed::None => Vec::new(),
            Computed::One => vec![
                ("cp_g", text.map(|text| text.to_uppercase().into())),
                ("cp_n", plus(1)),
                ("cp_o", Some(object([("x", inner), ("n", number)]))),
                ("missing", size.map(|size| (size >= 2.0).into())),
                ("b", body.get("o").cloned()),
            ],
            Computed::Other => vec![
                ("cp_g", text.map(|text| format!("{text}y").into())),
                ("cp_n", plus(2)),
                ("cp_o", Some(object([("x", body.get("a")), ("n", None)]))),
                ("missing", size.map(|size| (size < 0.0).into())),
            ],
        };
        let mut seen = body.clone();
        for (name, value) in values {
            seen.remove(name);
            seen.extend(value.map(|value| (name.to_owned(), value)));
        }
        seen
    }
}

/// Parses and lowers a query.
pub(crate) fn lowered(text: &str) -> Option<Query> {
    sql::lower(&sql::parse(text).ok()?, &sql::Parameters::none()).ok()
}

/// The definition of a container.
pub(super) fn definition(
    random: &mut Random,
    computed: Computed,
    default_ttl: Option<i64>,
) -> Result<ContainerDraft, RequestFault> {
    let mut draft = ContainerDraft::new("c", key_at_pk(PartitionKeyKind::HashV2)?);
    draft.default_ttl = match default_ttl.map(u32::try_from) {
        None => DefaultTtl::Off,
        Some(Err(_)) => DefaultTtl::OnDemand,
        Some(Ok(seconds)) => DefaultTtl::Seconds(seconds),
    };
    draft.policies.indexing = policy(random, computed)?;
    let properties = computed.queries().iter();
    draft.policies.computed = properties.map(|(name, query)| ComputedProperty::new(*name, *query)).collect();
    Ok(draft)
}

fn policy(random: &mut Random, computed: Computed) -> Result<IndexingPolicy, RequestFault> {
    if random.chance(20) {
        return Ok(IndexingPolicy::none());
    }
    let mut included = vec!["/*".to_owned()];
    let names = computed.queries().iter().map(|(name, _)| name);
    for name in names.filter(|_| random.chance(60)) {
        included.push(format!("/{name}/*"));
    }
    let included: Vec<&str> = included.iter().map(String::as_str).collect();
    let excluded: &[&str] = if random.chance(30) { &["/a/*", "/tags/*"] } else { &[] };
    let mut policy = IndexingPolicy::by_texts(&included, excluded)?;
    if random.chance(40) {
        let orders = [
            [("/g", false), ("/n", false)],
            [("/g", true), ("/a", false)],
            [("/a", false), ("/s", true)],
            [("/cp_g", false), ("/n", true)],
            [("/n", false), ("/cp_o/x", false)],
        ];
        policy.composite =
            orders.iter().map(|order| CompositeIndex::over(order)).collect::<Result<_, _>>()?;
    }
    if random.chance(70) {
        let types: [&[SpatialType]; 3] =
            [&[], &[SpatialType::Point], &[SpatialType::Polygon, SpatialType::LineString]];
        let types = *random.pick(&types);
        policy.spatial = vec![SpatialIndex::at("/loc/*", types)?];
    }
    Ok(policy)
}
