// The Monocle operator with controller-runtime, as the peer of a benchmark: the same children in the same order.
package main

import (
	"flag"
	"log"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	// --kubeconfig is one of controller-runtime's own flags.
	workers := flag.Int("workers", 8, "Monocles that are worked on at once")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.Level(zapcore.WarnLevel)))

	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(addToScheme(scheme))
	config, err := ctrl.GetConfig()
	must(err)
	config.UserAgent = operatorName
	// The server shares itself out: no limits here.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	must(err)
	must((&Reconciler{Client: manager.GetClient()}).setup(manager, *workers))
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
