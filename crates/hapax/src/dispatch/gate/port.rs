//! Ports that webhooks are sent to: a web server's own, and those that anybody may take, but for the usual ones of services that
//! speak to their neighbours only.

/// The lowest port that no system keeps for itself.
const FREE_FROM: u16 = 1_024;

/// Services that listen on ports of their own and trust whoever reaches them. A request to one of them is at best noise.
const INTERNAL: [u16; 47] = [
    1_080,  // SOCKS
    1_433,  // SQL Server
    1_521,  // Oracle
    1_723,  // PPTP
    2_049,  // NFS
    2_181,  // ZooKeeper
    2_375,  // Docker
    2_376,  // Docker
    2_379,  // etcd
    2_380,  // etcd
    3_128,  // Squid
    3_306,  // MySQL
    3_389,  // RDP
    4_369,  // Erlang
    5_060,  // SIP
    5_432,  // PostgreSQL
    5_671,  // AMQP
    5_672,  // AMQP
    5_900,  // VNC
    5_984,  // CouchDB
    5_985,  // WinRM
    5_986,  // WinRM
    6_000,  // X11
    6_379,  // Redis
    6_380,  // Redis
    6_443,  // Kubernetes
    7_000,  // Cassandra
    7_001,  // Cassandra
    8_086,  // InfluxDB
    8_500,  // Consul
    8_600,  // Consul
    9_042,  // Cassandra
    9_092,  // Kafka
    9_100,  // printers
    9_200,  // Elasticsearch
    9_300,  // Elasticsearch
    10_250, // kubelet
    10_255, // kubelet
    10_256, // kube-proxy
    11_211, // memcached
    15_672, // RabbitMQ
    25_672, // RabbitMQ
    27_017, // MongoDB
    27_018, // MongoDB
    28_017, // MongoDB
    50_070, // Hadoop
    61_616, // ActiveMQ
];

/// May anybody's endpoint be there?
pub(super) fn is_ordinary(port: u16) -> bool {
    matches!(port, 80 | 443) || (port >= FREE_FROM && !INTERNAL.contains(&port))
}
