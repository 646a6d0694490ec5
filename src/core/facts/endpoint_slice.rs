//! EndpointSlices: who is ready behind a Service (KEP-752, KEP-1672).

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// An EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Name, namespace, labels (`kubernetes.io/service-name`).
    pub metadata: Metadata,
    /// `addressType`: IPv4, IPv6 or FQDN. Dual-stack Services have a slice for each.
    pub address_type: String,
    /// `endpoints`; the API writes `null` for none.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint. Absent conditions are resolved as the API defines them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `addresses`
    pub addresses: Vec<String>,
    /// `nodeName`; none for endpoints that are not pods.
    pub node_name: Option<String>,
    /// `targetRef.uid`, to count a dual-stack pod once.
    pub target_uid: Option<String>,
    /// `targetRef.name`
    pub target_name: Option<String>,
    /// `conditions.ready`; absent means true (API documentation of EndpointConditions).
    pub ready: bool,
    /// `conditions.serving`; absent means the same as `ready`.
    pub serving: bool,
    /// `conditions.terminating`; absent means false.
    pub terminating: bool,
}

impl Source for EndpointSlice {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::EndpointSlices,
        group: "discovery.k8s.io",
        version: "v1",
        kind: "EndpointSlice",
        resource: "endpointslices",
        namespaces: Namespaces::DnsAndDefault,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            metadata: Metadata::of(root)?,
            address_type: root.optional_str("addressType")?.unwrap_or_default().to_owned(),
            endpoints: root.objects("endpoints")?.iter().map(endpoint).collect::<Result<_, _>>()?,
        })
    }
}

fn endpoint(entry: &Fields<'_>) -> Result<Endpoint, Malformed> {
    let conditions = entry.optional_object("conditions")?;
    let condition = |key: &str| conditions.as_ref().map_or(Ok(None), |conditions| conditions.optional_bool(key));
    let target = entry.optional_object("targetRef")?;
    let target_part = |key: &str| -> Result<Option<String>, Malformed> {
        Ok(target.as_ref().map_or(Ok(None), |target| target.optional_str(key))?.map(str::to_owned))
    };
    let ready = condition("ready")?.unwrap_or(true);
    Ok(Endpoint {
        addresses: entry.strings("addresses")?,
        node_name: entry.optional_str("nodeName")?.map(str::to_owned),
        target_uid: target_part("uid")?,
        target_name: target_part("name")?,
        ready,
        serving: condition("serving")?.unwrap_or(ready),
        terminating: condition("terminating")?.unwrap_or(false),
    })
}
