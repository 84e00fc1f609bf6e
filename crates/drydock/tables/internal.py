"""Makes the table of the server's internal Go types that its messages show (../src/api/validation/internal.txt).

    python3 internal.py "$(go env GOMODCACHE)/k8s.io" > ../src/api/validation/internal.txt
"""
import re,sys
K=sys.argv[1]+'/'
def parse(path):
    src=open(path).read()
    src=re.sub(r'/\*.*?\*/','',src,flags=re.S)
    structs={};alias={}
    for m in re.finditer(r'^type (\w+) struct \{\n(.*?)^\}',src,re.M|re.S):
        fields=[]
        for line in m.group(2).split('\n'):
            line=re.sub(r'//.*','',line).strip() if '`' not in line else line.strip()
            line=re.sub(r'`\s*//.*','`',line)
            if line.startswith('//') or not line: continue
            mm=re.match(r'^(\w+)\s+([^`\s]+(?:\s*[^`\s]+)?)\s*(`.*`)?$',line)
            if mm:
                tag=re.search(r'json:"([^"]*)"',mm.group(3) or '')
                fields.append((mm.group(1),mm.group(2).strip(),tag.group(1) if tag else None,False))
            else:
                mm=re.match(r'^([\w.*]+)\s*(`.*`)?$',line)
                if mm:
                    tag=re.search(r'json:"([^"]*)"',mm.group(2) or '')
                    fields.append((mm.group(1).split('.')[-1],mm.group(1),tag.group(1) if tag else None,True))
                else: print('??',line,file=sys.stderr)
        structs[m.group(1)]=fields
    for m in re.finditer(r'^type (\w+) (=\s*)?([\w.\[\]*]+)\s*$',src,re.M):
        if m.group(3)!='struct': alias[m.group(1)]=m.group(3)
    for m in re.finditer(r'^\s+(\w+)\s+(string|int32|int64)$',src,re.M): alias.setdefault(m.group(1),m.group(2))
    return structs,alias
core,ca=parse(K+'kubernetes@v1.36.3/pkg/apis/core/types.go')
apps,aa=parse(K+'kubernetes@v1.36.3/pkg/apis/apps/types.go')
batch,ba=parse(K+'kubernetes@v1.36.3/pkg/apis/batch/types.go')
rbac,ra=parse(K+'kubernetes@v1.36.3/pkg/apis/rbac/types.go')
policy,pa=parse(K+'kubernetes@v1.36.3/pkg/apis/policy/types.go')
storage,sa=parse(K+'kubernetes@v1.36.3/pkg/apis/storage/types.go')
networking,na=parse(K+'kubernetes@v1.36.3/pkg/apis/networking/types.go')
autoscaling,asa=parse(K+'kubernetes@v1.36.3/pkg/apis/autoscaling/types.go')
resource,rea=parse(K+'kubernetes@v1.36.3/pkg/apis/resource/types.go')
s1,_=parse(K+'api@v0.36.3/storage/v1/types.go')
n1,_=parse(K+'api@v0.36.3/networking/v1/types.go')
p1,_=parse(K+'api@v0.36.3/policy/v1/types.go')
v1,_=parse(K+'api@v0.36.3/core/v1/types.go')
a1,_=parse(K+'api@v0.36.3/apps/v1/types.go')
b1,_=parse(K+'api@v0.36.3/batch/v1/types.go')
r1,_=parse(K+'api@v0.36.3/rbac/v1/types.go')
as1,_=parse(K+'api@v0.36.3/autoscaling/v2/types.go')
re1,_=parse(K+'api@v0.36.3/resource/v1/types.go')
meta,ma=parse(K+'apimachinery@v0.36.3/pkg/apis/meta/v1/types.go')
pkgs={'core':(core,ca,v1),'apps':(apps,aa,a1),'batch':(batch,ba,b1),'rbac':(rbac,ra,r1),'policy':(policy,pa,p1),'storage':(storage,sa,s1),'networking':(networking,na,n1),'resource':(resource,rea,re1),'autoscaling':(autoscaling,asa,as1)}
out=[];seen=set()
V1NAME={}
def kind(pkg,t):
    structs,al,_=pkgs[pkg]
    if t.startswith('api.') or t.startswith('core.'): return kind('core',t.split('.',1)[1])
    if t.startswith('*'):
        k=kind(pkg,t[1:])
        return '*'+k[0:] if k[0].isupper() else '*'
    if t.startswith('[]'):
        if t=='[]byte': return '*'
        k=kind(pkg,t[2:])
        return '['+k+']' if k[0].isupper() else '*'
    if t.startswith('map['): return '*'
    if t in('string','types.UID'): return 's'
    if t in('int','int32','int64'): return 'i'
    if t=='bool': return 'b'
    if t in('resource.Quantity','apiresource.Quantity'): return 'q'
    if t=='runtime.RawExtension': return '*'
    if t=='intstr.IntOrString': return 'p'
    if t.startswith('metav1.'):
        n=t[7:]
        if n=='Time': return '*'
        tagged(n); return n
    if t in structs:
        emit(pkg,t); return t
    if t in al: return kind(pkg,al[t])
    if t in('ResourceList',): return '*'
    raise Exception((pkg,t))
def tagged(n):
    if n in seen: return
    seen.add(n)
    parts=[]
    for (f,t,tag,emb) in meta[n]:
        j=tag.split(',')[0]
        tt=t.lstrip('*[]')
        k='*'
        if tt in meta and tt not in('Time','FieldsV1','Duration'):
            tagged(tt); k=('['+tt+']') if t.startswith('[]') else '*'+tt
        parts.append(f'{j}:{k}' if 'omit' in tag else f'{j}:s')
    out.append('!'+n+' '+' '.join(parts))
def emit(pkg,t):
    if t in seen: return
    seen.add(t)
    structs,al,ver=pkgs[pkg]
    idx=len(out); out.append(None)
    vf={f:tag for (f,ty,tag,emb) in ver.get(t,[])}
    parts=[]
    for (f,ty,tag,emb) in structs[t]:
        if emb and 'TypeMeta' in ty:
            parts.append('^TypeMeta');
            if 'TypeMeta' not in seen: tagged('TypeMeta')
            continue
        if emb and 'ObjectMeta' in ty:
            tagged('ObjectMeta'); parts.append('metadata^ObjectMeta'); continue
        if emb:
            k=kind(pkg,ty); parts.append('^'+k); continue
        lower=f[0].lower()+f[1:]
        j=vf.get(f)
        j=j.split(',')[0] if j else None
        if j is None:
            if t=='PodSecurityContext': j='../'+{'HostPID':'hostPID','HostIPC':'hostIPC'}.get(f,lower)
            else:
                cand=[x for x in vf if x.lower()==f.lower()]
                if cand: j=vf[cand[0]].split(',')[0]
                else:
                    print('no v1',t,f,file=sys.stderr); j=lower
        k=kind(pkg,ty)
        parts.append((f if j==lower else f+'='+j)+':'+k)
    out[idx]=t+' '+' '.join(parts)
for p,t in [('core','PodSpec'),('core','PodTemplateSpec'),('core','PersistentVolumeClaimSpec'),('core','ServicePort'),('core','Taint'),('core','NodeAddress'),('apps','DaemonSetUpdateStrategy'),('apps','DeploymentStrategy'),('apps','StatefulSetUpdateStrategy'),('batch','PodFailurePolicy'),('batch','SuccessPolicy'),('rbac','RoleRef'),('policy','PodDisruptionBudgetSpec'),('core','PersistentVolumeSource'),('core','VolumeNodeAffinity'),('core','PodResourceClaim'),('storage','CSINodeDriver'),('storage','VolumeAttachmentSpec'),('networking','ParentReference'),('networking','ServiceCIDRSpec'),('resource','ResourceClaimSpec'),('resource','ResourceClaimTemplateSpec'),('resource','AllocationResult'),('resource','DeviceAttribute'),('core','PodIP'),('core','HostIP'),('autoscaling','HorizontalPodAutoscalerBehavior')]:
    emit(p,t)
print('\n'.join(sorted(out,key=lambda l:l.lstrip('!'))))
