"""Merges what Go's structs and a server's OpenAPI say of the built-in kinds into the drydock's tables (../data).

    go run . > structs.json
    python3 tables.py structs.json SCHEMAS DISCOVERY COLUMNS BOOTSTRAP ../data

SCHEMAS is {"kinds": {group/version/Kind: definition}, "definitions": the server's /openapi/v2 definitions},
DISCOVERY {"/api": ..., "/apis": ...} in aggregated form, COLUMNS {group/version/resource: columns},
BOOTSTRAP the objects of a new cluster.
"""
import json, os, re, sys

structs, schemas, discovery, columns, bootstrap = (json.load(open(p)) for p in sys.argv[1:6]); out = sys.argv[6]
definitions = schemas["definitions"]
HINTS = {"x-kubernetes-list-type": "lt", "x-kubernetes-list-map-keys": "lk", "x-kubernetes-patch-strategy": "ps", "x-kubernetes-patch-merge-key": "mk", "x-kubernetes-map-type": "mt"}
types = {}

def refs(t): return re.findall(r"@([\w.\-]+)", t)

def add(name):
    if name in types: return
    s = structs[name]; d = definitions.get(name, {}); props = d.get("properties", {}); fields = []
    types[name] = entry = {"go": s["go"], "f": fields}
    if d.get("x-kubernetes-map-type"): entry["mt"] = d["x-kubernetes-map-type"]
    for f in s["f"] or []:
        p = props.get(f["n"], {}); g = {"n": f["n"], "t": f["t"]}
        if f["o"]: g["o"] = f["o"]
        if f.get("e") and f["n"] not in ("kind", "apiVersion"): g["e"] = f["e"]
        if f.get("g"): g["g"] = f["g"]
        for long, short in HINTS.items():
            if p.get(long) not in (None, []): g[short] = p[long]
        if f["n"] in d.get("required", []): g["r"] = 1
        if p.get("default") not in (None, 0, {}, False) and (p["default"] != "" or f["o"]): g["d"] = p["default"]
        fields.append(g)
        for r in refs(f["t"]): add(r)

resources = []
def walk(doc):
    for g in doc["items"]:
        group = g["metadata"].get("name", "")
        for v in g["versions"]:
            gv = f"{group}/{v['version']}" if group else v["version"]
            for r in v["resources"]:
                kind = r["responseKind"]["kind"]; key = f"{group}/{v['version']}/{kind}" if group else f"v1/{kind}"
                definition = schemas["kinds"].get(key) or schemas["kinds"].get(f"{gv}/{kind}")
                e = {"group": group, "version": v["version"], "resource": r["resource"], "kind": kind, "singular": r["singularResource"], "namespaced": r["scope"] == "Namespaced", "verbs": r["verbs"]}
                for k in ("shortNames", "categories"):
                    if r.get(k): e[k] = r[k]
                if definition: e["type"] = definition; add(definition)
                subs = []
                for s in r.get("subresources", []):
                    k = s["responseKind"]; sg = k.get("group") or group if k["kind"] not in ("Binding",) else ""; sv = k.get("version") or v["version"]
                    sub = {"name": s["subresource"], "kind": k["kind"], "verbs": s["verbs"]}
                    if k.get("group") and k["group"] != group: sub["group"] = k["group"]
                    if k.get("version") and k["version"] != v["version"]: sub["version"] = k["version"]
                    d = schemas["kinds"].get(f"{sg}/{sv}/{k['kind']}" if sg else f"v1/{k['kind']}")
                    if d: sub["type"] = d; add(d)
                    subs.append(sub)
                if subs: e["subresources"] = subs
                c = columns.get(f"{gv}/{r['resource']}") or columns.get(f"{group}/{v['version']}/{r['resource']}")
                if c: e["columns"] = [[x["name"], x["type"], x["format"], x["priority"]] for x in c]
                resources.append(e)
walk(discovery["/api"]); walk(discovery["/apis"])
for extra in ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"): add(extra)
# The rules of roles that gather those of others are a controller's to fill.
for role in bootstrap:
    if "aggregationRule" in role: role.pop("rules", None)
# What the server fills in is not told to come from whoever made the object.
for made in bootstrap:
    if made["kind"] == "Namespace": made.pop("spec", None); made.pop("status", None)
    if made["kind"] == "Service": made["spec"].pop("clusterIPs", None); made["spec"].pop("ipFamilies", None)
def dump(name, x, rows):
    with open(os.path.join(out, name), "w") as f:
        if rows: f.write("[\n" + ",\n".join(json.dumps(r, sort_keys=False, separators=(",", ":")) for r in x) + "\n]\n")
        else: f.write("{\n" + ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in sorted(x.items())) + "\n}\n")
dump("types.json", types, False); dump("resources.json", resources, True); dump("bootstrap.json", bootstrap, True)
