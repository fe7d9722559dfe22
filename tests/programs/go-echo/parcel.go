package main

import (
	"encoding/binary"
	"unicode/utf16"
)

// Parcel is the data of a call or a reply, as libbinder of Android 16 lays it out.
type Parcel struct {
	data    []byte
	offsets []byte
}

// Int32 appends a number.
func (p *Parcel) Int32(value int32) {
	p.data = binary.LittleEndian.AppendUint32(p.data, uint32(value))
}

// Text appends a string of UTF-16 with its length and a zero at its end.
func (p *Parcel) Text(text string) {
	units := utf16.Encode([]rune(text))
	p.Int32(int32(len(units)))
	for _, unit := range append(units, 0) {
		p.data = binary.LittleEndian.AppendUint16(p.data, unit)
	}
	for len(p.data)%4 != 0 {
		p.data = append(p.data, 0)
	}
}

// Token begins a call of an interface.
func (p *Parcel) Token(descriptor string) {
	p.Int32(-1 << 31)
	p.Int32(-1)
	p.data = append(p.data, "TSYS"...)
	p.Text(descriptor)
}

// Object appends a node of this process, with its stability.
func (p *Parcel) Object(node uint64) {
	p.offsets = binary.LittleEndian.AppendUint64(p.offsets, uint64(len(p.data)))
	p.data = binary.LittleEndian.AppendUint32(p.data, binderObject)
	p.data = binary.LittleEndian.AppendUint32(p.data, 0x17f)
	p.data = binary.LittleEndian.AppendUint64(p.data, node)
	p.data = binary.LittleEndian.AppendUint64(p.data, 0)
	p.Int32(0xc)
}

// Reader takes values out of data, in order. What is missing is zero.
type Reader struct {
	data []byte
}

func (r *Reader) take(count int) []byte {
	taken := make([]byte, count)
	r.data = r.data[copy(taken, r.data):]
	return taken
}

// Int32 takes a number.
func (r *Reader) Int32() int32 {
	return int32(binary.LittleEndian.Uint32(r.take(4)))
}

// Text takes a string.
func (r *Reader) Text() string {
	units := make([]uint16, 0, 64)
	length := int(r.Int32())
	if length < 0 || length > len(r.data)/2 {
		return ""
	}
	bytes := r.take((2*(length+1) + 3) &^ 3)
	for at := 0; at < length; at++ {
		units = append(units, binary.LittleEndian.Uint16(bytes[2*at:]))
	}
	return string(utf16.Decode(units))
}

// Skip passes the header of a call of an interface.
func (r *Reader) Skip() {
	r.take(12)
	r.Text()
}

// Handle takes an object of another process; 0 if there is none.
func (r *Reader) Handle() uint32 {
	kind := uint32(r.Int32())
	r.Int32()
	number := uint32(r.Int32())
	r.take(12)
	r.Int32()
	if kind != handleObject {
		return 0
	}
	return number
}
