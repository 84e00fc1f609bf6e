"""Makes the table of Protocol Buffers messages (../data/protobuf.txt) from the generated.proto files of Kubernetes.

    python3 protobuf.py "$(go env GOMODCACHE)/k8s.io" ../data
"""
import re,glob,json,sys
base,out_dir=sys.argv[1:3]
types=json.load(open(f'{out_dir}/types.json'))
msgs={}
files=[f for m in ('api','apimachinery','apiextensions-apiserver','kube-aggregator') for f in glob.glob(f'{base}/{m}@v0.36.3/**/generated.proto',recursive=True)]
for f in files:
    s=open(f).read()
    pkg=re.search(r'^package ([\w.]+);',s,re.M).group(1)
    s=re.sub(r'//.*','',s)
    for m in re.finditer(r'^message (\w+) \{(.*?)^\}',s,re.M|re.S):
        fields=[]
        for line in m.group(2).split(';'):
            line=line.strip()
            if not line: continue
            mm=re.match(r'map<(\w+), ?\.?([\w.]+)> (\w+) = (\d+)',line)
            if mm: fields.append((int(mm[4]),mm[3],'map',mm[2])); continue
            mm=re.match(r'(optional|repeated|required) \.?([\w.]+) (\w+) = (\d+)',line)
            if not mm: print('??',pkg,m.group(1),line); continue
            fields.append((int(mm[4]),mm[3],mm[1],mm[2]))
        msgs[pkg+'.'+m.group(1)]=(pkg,fields)
SC={'string':'s','int32':'i','int64':'i','uint32':'i','uint64':'i','bool':'b','bytes':'y','double':'d'}
def full(pkg,t):
    if t in SC: return SC[t]
    n=t if '.' in t else pkg+'.'+t
    assert n in msgs,(pkg,t)
    return n
def defn(n): # k8s.io.api.core.v1.Pod -> io.k8s.api.core.v1.Pod
    p=n.split('.'); assert p[:2]==['k8s','io'],n; return 'io.k8s.'+'.'.join(p[2:]).replace('_','-')
SPECIAL={'Quantity':'quantity','Time':'time','MicroTime':'micro','Duration':'duration','IntOrString':'intorstring','RawExtension':'raw','FieldsV1':'raw','JSON':'raw','JSONSchemaPropsOrArray':'orarray','JSONSchemaPropsOrBool':'orbool','JSONSchemaPropsOrStringArray':'orstrings','ExtraValue':'list','Verbs':'list'}
need=[];out={}
todo=[n for n in msgs if defn(n) in types]
seen=set(todo)
odd=[]
while todo:
    n=todo.pop(); pkg,fields=msgs[n]; short=n.rsplit('.',1)[1]
    if short in SPECIAL and defn(n).split('.')[-2] in ('v1','resource','intstr','runtime'): continue
    names={f['n'] for f in types.get(defn(n),{}).get('f',[])}
    rows=[]
    for num,name,mode,t in fields:
        ft=full(pkg,t)
        if ft in SC.values(): code=ft
        else:
            code='@'+defn(ft)
            if ft.rsplit('.',1)[1] in SPECIAL: code='!'+SPECIAL[ft.rsplit('.',1)[1]]
            elif ft not in seen: seen.add(ft); todo.append(ft)
        pre={'optional':'','required':'','repeated':'[]','map':'{}'}[mode]
        if names and name not in names:
            low={x.lower():x for x in names}
            kebab=re.sub(r'([A-Z])',lambda m:'-'+m.group(1).lower(),name)
            name=low.get(name.lower()) or ({'$'+name}&names or {kebab}&names or {name}).pop()
        if names and name not in names:
            if mode=='optional' and code.startswith('@'): pre='^'
            else: odd.append((defn(n),name,code)); 
        rows.append((num,name,pre+code))
    out[defn(n)]=rows
names=sorted(out)
lines=[]
for n in names:
    lines.append(n)
    for num,name,code in sorted(out[n]): lines.append(f' {num} {name} {code}')
text='\n'.join(lines)+'\n'
open(f'{out_dir}/protobuf.txt','w').write(text)
