// Package chart tests the Helm charts: it renders charts/heliostat and charts/ray-cluster with the Helm library and looks at the
// objects as the API server would get them. It is a module of its own because Helm asks for newer versions of many
// modules than the operator uses.
package chart
