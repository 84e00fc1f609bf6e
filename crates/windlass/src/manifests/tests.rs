use super::*;

fn setup() -> Setup {
    Setup {
        namespace: "ops".into(),
        watch_namespaces: Vec::new(),
        make_namespace: true,
        image: "example.org/rafter:1".into(),
        command: Vec::new(),
        args: vec!["run".into()],
        env: BTreeMap::new(),
        replicas: 2,
        shards: false,
        webhooks: false,
    }
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn everything_is_there_in_an_order_in_which_it_can_be_applied() {
    let operator = Operator::new("rafter");
    let objects = objects(&operator, &setup());
    assert_eq!(kinds(&objects), ["Namespace", "ServiceAccount", "Role", "RoleBinding", "Deployment"]);
    let webhooks = super::objects(&operator, &Setup { make_namespace: false, webhooks: true, ..setup() });
    let expected = [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Service",
        "Deployment",
    ];
    assert_eq!(kinds(&webhooks), expected);
}

#[test]
fn the_deployment_finds_its_pods_and_its_account() {
    let objects = objects(&Operator::new("rafter"), &setup());
    let deployment = objects.last().unwrap();
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for (key, value) in deployment["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&labels[key], value);
    }
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], "rafter");
    let binding = objects.iter().find(|object| object["kind"] == "RoleBinding").unwrap();
    assert_eq!(binding["subjects"][0]["namespace"], "ops");
}
