package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// GcsFaultToleranceBackend is where Ray's GCS keeps its state.
//
// +kubebuilder:validation:Enum=redis;rocksdb
type GcsFaultToleranceBackend string

const (
	// GcsBackendRedis keeps the state in a Redis server that the user runs.
	GcsBackendRedis GcsFaultToleranceBackend = "redis"
	// GcsBackendRocksDB keeps the state in a RocksDB store on a persistent volume of the head.
	GcsBackendRocksDB GcsFaultToleranceBackend = "rocksdb"
)

// GcsFaultToleranceOptions says where the state of the head (Ray's GCS) is kept, so that it survives the head Pod.
type GcsFaultToleranceOptions struct {
	// backend is where the state is kept. Unset means redis. Once set, the value cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="backend cannot be changed once it is set",messageExpression="'backend is ' + oldSelf + ' and cannot be changed once it is set'"
	Backend GcsFaultToleranceBackend `json:"backend,omitempty"`
	// redisAddress is the address of the Redis server, or a comma-separated list of addresses.
	// +optional
	RedisAddress string `json:"redisAddress,omitempty"`
	// redisUsername is the user name at the Redis server.
	// +optional
	RedisUsername *RedisCredential `json:"redisUsername,omitempty"`
	// redisPassword is the password at the Redis server.
	// +optional
	RedisPassword *RedisCredential `json:"redisPassword,omitempty"`
	// externalStorageNamespace is the prefix of the cluster's keys in Redis. Unset means the RayCluster's UID.
	// +optional
	ExternalStorageNamespace string `json:"externalStorageNamespace,omitempty"`
	// storage is the volume of the RocksDB store.
	// +optional
	Storage *GcsEmbeddedStorage `json:"storage,omitempty"`
}

// RedisCredential is a user name or a password: a literal, or a reference to where it is kept.
type RedisCredential struct {
	// value is the literal.
	// +optional
	Value string `json:"value,omitempty"`
	// valueFrom is the reference.
	// +optional
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// GCSStorageDeletionPolicy says what becomes of the volume claim when its RayCluster is deleted.
//
// +kubebuilder:validation:Enum=DeleteWithCluster;Retain
type GCSStorageDeletionPolicy string

const (
	// GCSStorageDeleteWithCluster deletes the claim together with the RayCluster.
	GCSStorageDeleteWithCluster GCSStorageDeletionPolicy = "DeleteWithCluster"
	// GCSStorageRetain keeps the claim.
	GCSStorageRetain GCSStorageDeletionPolicy = "Retain"
)

// GcsEmbeddedStorage is the volume of the RocksDB store of the head.
type GcsEmbeddedStorage struct {
	// claimName is the name of an existing PersistentVolumeClaim. It excludes size, storageClassName and accessModes.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// size is the size of the claim that is made when claimName is unset. Unset means 1Gi.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClassName is the storage class of that claim. Unset means the default class of the Kubernetes cluster.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// accessModes are the access modes of that claim. Unset means ReadWriteOnce.
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// subPath is the directory within the volume that is mounted.
	// +optional
	SubPath string `json:"subPath,omitempty"`
	// deletionPolicy says what becomes of that claim when the RayCluster is deleted. Unset means DeleteWithCluster.
	// +optional
	DeletionPolicy *GCSStorageDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RedisStorage is a place in Redis in which a head of a RayCluster kept its state. Heliostat adds it.
type RedisStorage struct {
	// env are the variables with which the head was told about it: RAY_external_storage_namespace, RAY_REDIS_ADDRESS,
	// REDIS_USERNAME and REDIS_PASSWORD.
	// +listType=atomic
	Env []corev1.EnvVar `json:"env"`
}
