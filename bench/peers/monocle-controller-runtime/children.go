package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	operatorName = "monocle-controller-runtime"
	configFile   = "/etc/monocle/config.yaml"
	firstConfig  = "workspaces:\n  - name: demo\n    crawlers: []\n"
	user         = int64(1000)
)

func labels(m *Monocle, component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "monocle",
		"app.kubernetes.io/instance":   m.Name,
		"app.kubernetes.io/component":  component,
		"app.kubernetes.io/part-of":    "monocle",
		"app.kubernetes.io/managed-by": operatorName,
	}
}

func selection(m *Monocle, component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":      "monocle",
		"app.kubernetes.io/instance":  m.Name,
		"app.kubernetes.io/component": component,
	}
}

func meta(m *Monocle, suffix, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-" + suffix, Labels: labels(m, component)}
}

// random gives a text of length n. rand.Text has 26 letters each.
func random(n int) []byte {
	text := ""
	for len(text) < n {
		text += rand.Text()
	}
	return []byte(text[:n])
}

func apiSecret(m *Monocle) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(m, "api", "api"),
		Data: map[string][]byte{
			"CRAWLERS_API_KEY":    random(24),
			"MONOCLE_JWK_GEN_KEY": random(64),
		},
	}
}

func apiConfig(m *Monocle) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(m, "api", "api"), Data: map[string]string{"config.yaml": firstConfig}}
}

func service(m *Monocle, component string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(m, component, component),
		Spec: corev1.ServiceSpec{
			Selector: selection(m, component),
			Ports:    []corev1.ServicePort{{Name: "http", Port: port, TargetPort: intstr.FromString("http")}},
		},
	}
}

func elastic(m *Monocle) *appsv1.StatefulSet {
	container := corev1.Container{
		Name:  "elastic",
		Image: m.Spec.Elastic.Image,
		Env: []corev1.EnvVar{
			{Name: "discovery.type", Value: "single-node"},
			{Name: "ES_JAVA_OPTS", Value: "-Xms256m -Xmx256m"},
		},
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 9200}},
		StartupProbe:   probe("/", 9200, 5, 60),
		ReadinessProbe: probe("/", 9200, 10, 3),
		VolumeMounts:   []corev1.VolumeMount{{Name: "data", MountPath: "/usr/share/elasticsearch/data"}},
	}
	return &appsv1.StatefulSet{
		ObjectMeta: meta(m, "elastic", "elastic"),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: m.Name + "-elastic",
			Replicas:    ptr.To(int32(1)),
			Selector:    &metav1.LabelSelector{MatchLabels: selection(m, "elastic")},
			Template:    template(m, "elastic", container),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: labels(m, "elastic")},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(m.Spec.Elastic.StorageSize)},
					},
				},
			}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
		},
	}
}

func api(m *Monocle, tokens string) *appsv1.Deployment {
	env := []corev1.EnvVar{
		{Name: "MONOCLE_ELASTIC_URL", Value: "http://" + m.Name + "-elastic:9200"},
		{Name: "MONOCLE_PUBLIC_URL", Value: publicURL(m)},
	}
	return monocleDeployment(m, "api", 8080, "http", tokens, env, appsv1.DeploymentStrategy{})
}

func crawler(m *Monocle, tokens string) *appsv1.Deployment {
	env := []corev1.EnvVar{{Name: "MONOCLE_PUBLIC_URL", Value: "http://" + m.Name + "-api:8080"}}
	// Two crawlers at once would double the data.
	recreate := appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return monocleDeployment(m, "crawler", 9001, "health", tokens, env, recreate)
}

func monocleDeployment(m *Monocle, component string, port int32, portName, tokens string, env []corev1.EnvVar, strategy appsv1.DeploymentStrategy) *appsv1.Deployment {
	container := corev1.Container{
		Name:    component,
		Image:   m.Spec.Image,
		Command: []string{"monocle", component},
		Env:     append(env, corev1.EnvVar{Name: "MONOCLE_CONFIG", Value: configFile}),
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name + "-api"},
		}}},
		Ports:          []corev1.ContainerPort{{Name: portName, ContainerPort: port}},
		StartupProbe:   probe("/health", port, 5, 60),
		ReadinessProbe: probe("/health", port, 10, 3),
		LivenessProbe:  probe("/health", port, 20, 6),
		VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/monocle", ReadOnly: true}},
	}
	pods := template(m, component, container)
	pods.Annotations = map[string]string{"monocle.change-metrics.io/tokens-hash": tokens}
	pods.Spec.Volumes = []corev1.Volume{{
		Name: "config",
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name + "-api"},
		}},
	}}
	return &appsv1.Deployment{
		ObjectMeta: meta(m, component, component),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: selection(m, component)},
			Strategy: strategy,
			Template: pods,
		},
	}
}

func template(m *Monocle, component string, container corev1.Container) corev1.PodTemplateSpec {
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(m, component)},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{container},
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   ptr.To(true),
				RunAsUser:      ptr.To(user),
				FSGroup:        ptr.To(user),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

func probe(path string, port, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)},
		},
		PeriodSeconds:    period,
		FailureThreshold: failures,
		// The defaults: DeepDerivative leaves out empty texts and lists, but not a number that is zero.
		TimeoutSeconds:   1,
		SuccessThreshold: 1,
	}
}

func publicURL(m *Monocle) string {
	if m.Spec.PublicURL == "" {
		return "http://localhost:8090"
	}
	return m.Spec.PublicURL
}

// contentHash is over the values alone: labels and resourceVersion do not matter.
func contentHash(data map[string][]byte) string {
	text, _ := json.Marshal(data)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
