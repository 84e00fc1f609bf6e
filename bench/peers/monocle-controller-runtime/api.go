package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "monocle.monocle.change-metrics.io", Version: "v1alpha1"}

// Monocle is one Monocle: Elasticsearch, the API and the crawler. Only the fields that the benchmark uses are here.
type Monocle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MonocleSpec   `json:"spec,omitempty"`
	Status            MonocleStatus `json:"status,omitempty"`
}

type MonocleSpec struct {
	Image     string      `json:"image,omitempty"`
	PublicURL string      `json:"publicURL,omitempty"`
	Elastic   ElasticSpec `json:"elastic,omitempty"`
}

type ElasticSpec struct {
	Image       string `json:"image,omitempty"`
	StorageSize string `json:"storageSize,omitempty"`
}

type MonocleStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	API                string             `json:"api,omitempty"`
	Crawler            string             `json:"crawler,omitempty"`
	Elastic            string             `json:"elastic,omitempty"`
	URL                string             `json:"url,omitempty"`
}

type MonocleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Monocle `json:"items"`
}

func (in *Monocle) DeepCopyObject() runtime.Object {
	out := &Monocle{TypeMeta: in.TypeMeta, Spec: in.Spec, Status: *in.Status.DeepCopy()}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopy copies the conditions too.
func (in *MonocleStatus) DeepCopy() *MonocleStatus {
	out := *in
	out.Conditions = make([]metav1.Condition, len(in.Conditions))
	for i := range in.Conditions {
		in.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
	return &out
}

func (in *MonocleList) DeepCopyObject() runtime.Object {
	out := &MonocleList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopyObject().(*Monocle))
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Monocle{}, &MonocleList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}
