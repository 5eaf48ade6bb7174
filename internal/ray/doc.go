// Package ray knows what Ray needs inside a container: the start command, ports, environment, probes and resources.
//
// It knows neither controllers nor the ray.io API. Its inputs are containers and Pod specs of Kubernetes and plain
// maps, its outputs are changes of those, so that it can be read and tested beside Ray's own documentation.
//
// Two facts shape most of the code. The Ray container is the first one of a Pod, whatever its name. And Ray is
// started by a line of shell, because users write shell text such as $REDIS_PASSWORD or '{"TPU":4}' as values of
// start parameters and expect it to work; quote.go says what such a value means.
package ray
