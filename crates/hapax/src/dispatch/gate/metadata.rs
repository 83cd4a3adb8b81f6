//! Metadata services of clouds: addresses that give credentials to whoever asks from the right machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Some are in closed blocks anyway; they stay closed even if an operator opens the block. The others look public.
const METADATA_V4: [Ipv4Addr; 8] = [
    // AWS, Google, Azure, Oracle, DigitalOcean, Hetzner and most others.
    Ipv4Addr::new(169, 254, 169, 254),
    // AWS: its DNS, its clock, and the credentials of ECS and EKS.
    Ipv4Addr::new(169, 254, 169, 253),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    // Tencent.
    Ipv4Addr::new(169, 254, 0, 23),
    // Azure's wire server: a public address that only exists within Azure.
    Ipv4Addr::new(168, 63, 129, 16),
    // Alibaba.
    Ipv4Addr::new(100, 100, 100, 200),
    // Oracle, older.
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 4] = [
    // AWS: metadata, DNS, and the credentials of EKS.
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0253),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0023),
    // Google.
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
];

/// Is it one of them?
pub(super) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => METADATA_V4.contains(&address),
        IpAddr::V6(address) => METADATA_V6.contains(&address),
    }
}
