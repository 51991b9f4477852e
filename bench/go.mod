module github.com/coir-go/coir/bench

go 1.26.0

require (
	github.com/alitto/pond/v2 v2.7.1
	github.com/coir-go/coir v0.0.0-00010101000000-000000000000
	github.com/gammazero/chanqueue v1.1.3
	github.com/gammazero/workerpool v1.3.0
	github.com/panjf2000/ants/v2 v2.12.1
	github.com/samber/lo v1.53.0
	github.com/samber/ro v0.3.0
	github.com/smallnest/chanx v1.2.0
	github.com/sourcegraph/conc v0.3.0
	golang.org/x/sync v0.24.0
	golang.org/x/time v0.16.0
)

require (
	github.com/gammazero/deque v1.2.2 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.9.0 // indirect
	golang.org/x/exp v0.0.0-20220303212507-bbda1eaf7a17 // indirect
	golang.org/x/text v0.22.0 // indirect
)

replace github.com/coir-go/coir => ../
