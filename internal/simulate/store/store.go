// Package store holds the objects of a simulated cluster behind the informers
// that scheduler code reads. Nothing is listed or watched: an object that is put
// into the store is in the informer's index, and has been through every event
// handler, before Put returns. That makes upstream's own event handlers part of
// the simulation, in an order that is the same in every run.
//
// The package must not know what the objects mean, nor who handles their events.
package store

import (
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Object is an object that a store can hold.
type Object interface {
	metav1.Object
	runtime.Object
}

// kinds are the types that a store can hold: all that the scheduler's plugins
// read through informers.
func kinds() []Object {
	return []Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{}, &corev1.Service{}, &corev1.ReplicationController{},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
		&appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
		&policyv1.PodDisruptionBudget{}, &schedulingv1.PriorityClass{}, &schedulingv1beta1.PodGroup{},
		&storagev1.StorageClass{}, &storagev1.CSIDriver{}, &storagev1.CSINode{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
		&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}, &resourcev1.DeviceTaintRule{},
	}
}

// Store is a set of objects. It may be read from several goroutines at once, and
// written from one.
type Store struct {
	factory   informers.SharedInformerFactory
	informers map[reflect.Type]*informer
	version   atomic.Uint64
}

// New returns an empty store, whose informers give client to those who ask the
// factory for more.
func New(client kubernetes.Interface) *Store {
	s := &Store{factory: informers.NewSharedInformerFactory(client, 0), informers: map[reflect.Type]*informer{}}
	for _, kind := range kinds() {
		i := newInformer()
		s.informers[reflect.TypeOf(kind)] = i
		s.factory.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return i })
	}
	return s
}

// Factory returns the informers. It need not be started.
func (s *Store) Factory() informers.SharedInformerFactory { return s.factory }

// Put adds the object, or puts it in the place of the one of its name, and has
// the event handlers run. The store keeps the object, and writes a new resource
// version into it. The error says that the store cannot hold such an object, or
// that the informer's transform refused it.
func (s *Store) Put(object Object) error {
	i, err := s.informer(object)
	if err != nil {
		return err
	}
	object.SetResourceVersion(s.NextVersion())
	return i.put(object)
}

// Remove takes away the object of the name of this one, and has the event
// handlers run. An object that is not there is no error.
func (s *Store) Remove(object Object) error {
	i, err := s.informer(object)
	if err != nil {
		return err
	}
	return i.remove(object)
}

// Get returns the object of the type, namespace and name of like, and false if
// there is none. Nobody may change it.
func Get[T Object](s *Store, like T, namespace, name string) (T, bool) {
	var none T
	i, err := s.informer(like)
	if err != nil {
		return none, false
	}
	found, exists, err := i.indexer.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return none, false
	}
	object, ok := found.(T)
	return object, ok
}

func (s *Store) informer(object Object) (*informer, error) {
	i, ok := s.informers[reflect.TypeOf(object)]
	if !ok {
		return nil, fmt.Errorf("a simulated cluster cannot hold a %T", object)
	}
	return i, nil
}

// NextVersion returns a resource version that no object has yet.
func (s *Store) NextVersion() string {
	return strconv.FormatUint(s.version.Add(1), 10)
}
