package main

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// Requests, commands and returns of linux/android/binder.h, and kinds of objects.
const (
	writeRead = 0xc0306201

	bcTransaction = 0x40406300
	bcReply       = 0x40406301
	bcFreeBuffer  = 0x40086303
	bcIncrefs     = 0x40046304
	bcAcquire     = 0x40046305
	bcIncrefsDone = 0x40106308
	bcAcquireDone = 0x40106309
	bcEnterLooper = 0x0000630c

	brTransaction = 0x80407202
	brReply       = 0x80407203
	brDeadReply   = 0x00007205
	brComplete    = 0x00007206
	brIncrefs     = 0x80107207
	brAcquire     = 0x80107208
	brRelease     = 0x80107209
	brDecrefs     = 0x8010720a
	brFailedReply = 0x00007211

	binderObject = 0x73622a85
	handleObject = 0x73682a85

	oneWay     = 1
	areaSize   = 1 << 20
	readerRoom = 256
)

// Transaction is `struct binder_transaction_data`.
type Transaction struct {
	target, cookie    uint64
	code, flags       uint32
	senderPid         int32
	senderUID         uint32
	size, offsetsSize uint64
	data, offsets     uint64
}

// Driver is an open device with its receiving area.
type Driver struct {
	fd   int
	area []byte
}

// Thread is a thread of the driver's: it belongs to one goroutine, which is locked to its thread of the system.
type Thread struct {
	// The driver knows addresses in it, and goroutines' stacks move: it is on the heap because `threadsKept` has it.
	driver   *Driver
	commands []byte
	returns  []byte
	room     [readerRoom]byte
	// What is being sent, for the same reason.
	sent    *Parcel
	request struct {
		writeSize, written, writeBuffer uint64
		readSize, read, readBuffer      uint64
	}
}

// Open opens a device.
func Open(path string) (*Driver, error) {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	area, err := syscall.Mmap(fd, 0, areaSize, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	return &Driver{fd, area}, err
}

var threadsKept sync.Map

// Thread makes the calling goroutine a thread of the driver's.
func (d *Driver) Thread() *Thread {
	runtime.LockOSThread()
	thread := &Thread{driver: d}
	threadsKept.Store(thread, true)
	return thread
}

func (t *Thread) command(code uint32, payload ...any) {
	t.commands = binary.LittleEndian.AppendUint32(t.commands, code)
	for _, value := range payload {
		switch value := value.(type) {
		case uint32:
			t.commands = binary.LittleEndian.AppendUint32(t.commands, value)
		case uint64:
			t.commands = binary.LittleEndian.AppendUint64(t.commands, value)
		case *Transaction:
			t.commands = append(t.commands, unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))...)
		}
	}
}

// exchange writes the commands and waits for returns.
func (t *Thread) exchange() error {
	for len(t.returns) == 0 {
		r := &t.request
		r.writeSize, r.written, r.writeBuffer = uint64(len(t.commands)), 0, 0
		if len(t.commands) > 0 {
			r.writeBuffer = uint64(uintptr(unsafe.Pointer(&t.commands[0])))
		}
		r.readSize, r.read, r.readBuffer = readerRoom, 0, uint64(uintptr(unsafe.Pointer(&t.room)))
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(t.driver.fd), writeRead, uintptr(unsafe.Pointer(r)))
		t.commands = t.commands[r.written:]
		t.returns = t.room[:r.read]
		// The Go runtime interrupts its threads by signals.
		if errno != 0 && errno != syscall.EINTR {
			return errno
		}
	}
	return nil
}

func (t *Thread) take(target any) {
	size := binary.Size(target)
	switch target := target.(type) {
	case *uint32:
		*target = binary.LittleEndian.Uint32(t.returns)
	case *[2]uint64:
		target[0], target[1] = binary.LittleEndian.Uint64(t.returns), binary.LittleEndian.Uint64(t.returns[8:])
	case *Transaction:
		size = int(unsafe.Sizeof(*target))
		copy(unsafe.Slice((*byte)(unsafe.Pointer(target)), size), t.returns)
	}
	t.returns = t.returns[size:]
}

// received copies the data of a buffer and gives the buffer back with the next commands.
func (t *Thread) received(got *Transaction) *Reader {
	start := got.data - uint64(uintptr(unsafe.Pointer(&t.driver.area[0])))
	data := append([]byte(nil), t.driver.area[start:start+got.size]...)
	t.command(bcFreeBuffer, got.data)
	return &Reader{data}
}

func (t *Thread) send(command uint32, to *Transaction, parcel *Parcel) {
	t.sent = parcel
	to.size, to.offsetsSize = uint64(len(parcel.data)), uint64(len(parcel.offsets))
	if len(parcel.data) > 0 {
		to.data = uint64(uintptr(unsafe.Pointer(&parcel.data[0])))
	}
	if len(parcel.offsets) > 0 {
		to.offsets = uint64(uintptr(unsafe.Pointer(&parcel.offsets[0])))
	}
	t.command(command, to)
}

// serve handles returns until one ends a call: a reply, or its failure.
func (t *Thread) serve() (*Reader, error) {
	for {
		if err := t.exchange(); err != nil {
			return nil, err
		}
		var word uint32
		t.take(&word)
		switch word {
		case brTransaction:
			var call Transaction
			t.take(&call)
			reply := answer(call.code, t.received(&call))
			if call.flags&oneWay == 0 {
				t.send(bcReply, &Transaction{}, reply)
				// Its completion comes before anything else.
				if err := t.exchange(); err != nil {
					return nil, err
				}
			}
		case brReply:
			var reply Transaction
			t.take(&reply)
			return t.received(&reply), nil
		case brDeadReply, brFailedReply:
			return nil, fmt.Errorf("return %#x", word)
		case brIncrefs, brAcquire:
			var node [2]uint64
			t.take(&node)
			done := uint32(bcIncrefsDone)
			if word == brAcquire {
				done = bcAcquireDone
			}
			t.command(done, node[0], node[1])
		case brRelease, brDecrefs:
			t.take(&[2]uint64{})
		}
	}
}

// Call calls a method and waits for the reply.
func (t *Thread) Call(handle, code uint32, arguments *Parcel) (*Reader, error) {
	t.send(bcTransaction, &Transaction{target: uint64(handle), code: code, flags: 0x10}, arguments)
	return t.serve()
}

// Keep holds an object of another process for ever.
func (t *Thread) Keep(handle uint32) {
	t.command(bcIncrefs, handle)
	t.command(bcAcquire, handle)
}

// Loop serves calls until the driver fails.
func (t *Thread) Loop() error {
	t.command(bcEnterLooper)
	_, err := t.serve()
	return err
}
