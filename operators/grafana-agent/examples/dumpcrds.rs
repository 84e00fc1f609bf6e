fn main() { println!("{}", serde_json::to_string(&windlass_grafana_agent::crds()).unwrap()); }
