package main

import "weir/screening"

// engines are the contestants, each with the same policy.
type engines struct {
	weir          *screening.Vocabulary
	opa, opaTuned *opaEngine
	cel, celTuned *celEngine
}

func newEngines() (e engines, err error) {
	if e.weir, err = weirVocabulary(); err != nil {
		return e, err
	}
	if e.opa, err = newOPA(opaPlain()); err != nil {
		return e, err
	}
	if e.opaTuned, err = newOPA(opaTuned()); err != nil {
		return e, err
	}
	if e.cel, err = newCEL(false); err != nil {
		return e, err
	}
	e.celTuned, err = newCEL(true)
	return e, err
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
