// A Binder service and its client in Go, which makes system calls without the C library, from threads that its runtime interrupts by
// signals. Only Go's own library is used. Usage: go-echo service|client NAME [DEVICE]
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	managerName = "android.os.IServiceManager"
	echoName    = "binderperf.test.IEcho"

	checkService = 3
	addService   = 5
	number       = 1
	interfaceOf  = 0x5f4e5446

	threads = 4
	calls   = 500
)

// answer is the service: it says its interface, and returns numbers.
func answer(code uint32, arguments *Reader) *Parcel {
	reply := &Parcel{}
	switch code {
	case number:
		arguments.Skip()
		reply.Int32(0)
		reply.Int32(arguments.Int32())
	case interfaceOf:
		reply.Text(echoName)
	}
	return reply
}

// disturb has the garbage collector run all the time, which interrupts the threads.
func disturb() {
	for {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func serve(driver *Driver, name string) error {
	failures := make(chan error)
	for range [threads]int{} {
		go func() { failures <- driver.Thread().Loop() }()
	}
	var register Parcel
	register.Token(managerName)
	register.Text(name)
	register.Object(1)
	register.Int32(0)
	register.Int32(8)
	reply, err := driver.Thread().Call(0, addService, &register)
	if err != nil {
		return err
	}
	if status := reply.Int32(); status != 0 {
		return fmt.Errorf("addService: exception %d", status)
	}
	fmt.Println("registered")
	return <-failures
}

func find(thread *Thread, name string) (uint32, error) {
	for range [200]int{} {
		var check Parcel
		check.Token(managerName)
		check.Text(name)
		reply, err := thread.Call(0, checkService, &check)
		if err != nil {
			return 0, err
		}
		reply.Int32()
		if handle := reply.Handle(); handle != 0 {
			thread.Keep(handle)
			return handle, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, fmt.Errorf("nobody serves %s", name)
}

func exchange(driver *Driver, handle uint32, first int32) error {
	thread := driver.Thread()
	for sent := first; sent < first+calls; sent++ {
		var arguments Parcel
		arguments.Token(echoName)
		arguments.Int32(sent)
		reply, err := thread.Call(handle, number, &arguments)
		if err != nil {
			return err
		}
		if status, came := reply.Int32(), reply.Int32(); status != 0 || came != sent {
			return fmt.Errorf("%d was answered by status %d and %d", sent, status, came)
		}
	}
	return nil
}

func call(driver *Driver, name string) error {
	handle, err := find(driver.Thread(), name)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	failures := make([]error, threads)
	for at := range failures {
		all.Add(1)
		go func(at int) {
			failures[at] = exchange(driver, handle, int32(at*calls))
			all.Done()
		}(at)
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	fmt.Printf("%d numbers came back\n", threads*calls)
	return nil
}

func run(words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("usage: go-echo service|client NAME [DEVICE]")
	}
	device := "/dev/binder"
	if len(words) > 3 {
		device = words[3]
	}
	driver, err := Open(device)
	if err != nil {
		return err
	}
	go disturb()
	if words[1] == "service" {
		return serve(driver, words[2])
	}
	return call(driver, words[2])
}

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
