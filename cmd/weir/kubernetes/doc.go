// Package kubernetes answers the API server before a training job is kept: a
// validating admission webhook in front of the Desk.
//
// An object carries its training spec in one annotation, [SpecAnnotation]. What
// is screened is that spec together with an input of kind code that stands for
// the object's own workload: images, commands, environment, volumes. The workload
// is the object's spec without what the cluster's machinery writes into it
// (names, uids, scheduling, suspension, replica counts), so that two creates of
// one manifest are one spec, and a job that Kueue starts stays the one that was
// screened. Everything that is not named as machinery counts: a field that this
// package has never heard of changes the digest.
//
// Nothing but an answer of the Desk that the gate is open lets an object in. An
// update is asked about again when it changes what would train, or starts what
// was suspended; every other update passes, or a gate that is away would keep the
// cluster from cleaning up.
package kubernetes
