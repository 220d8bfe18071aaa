package image_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/sandbox/internal/image"
)

func methods(t testing.TB) []image.Method {
	if image.Detect() == image.Copy {
		if runtime.GOOS == "linux" {
			t.Log("this kernel does not tell which pages were written to: only copying is tested")
		}
		return []image.Method{image.Copy}
	}
	return []image.Method{image.Scan, image.Copy}
}

func open(t testing.TB, method image.Method, content []byte, size, limit int64) (*image.Image, *image.Memory) {
	i, err := image.NewWith(method, content, size)
	if err != nil {
		t.Fatal(err)
	}
	m, err := i.NewMemory(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i, m
}

// TestReset writes at random, grows at random, and finds the image again after
// each reset.
func TestReset(t *testing.T) {
	seed := seed.Of(t)
	for _, method := range methods(t) {
		t.Run(string(method), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			content := make([]byte, 40*image.PageSize-777)
			for at := range content {
				if at/8192%3 > 0 { // a third is left unwritten
					content[at] = byte(rnd.Uint32())
				}
			}
			const size, limit = 41 * image.PageSize, 64 * image.PageSize
			want := make([]byte, limit)
			copy(want, content)
			_, m := open(t, method, content, size, limit)
			for round := range 60 {
				used := uint64(size + rnd.IntN(24)*image.PageSize)
				mem := m.Reallocate(used)
				if !bytes.Equal(mem, want[:used]) {
					t.Fatalf("round %d: the memory is not as its image", round)
				}
				for range 1 << rnd.IntN(13) {
					at := rnd.IntN(len(mem) - 64)
					for j := range rnd.IntN(64) {
						mem[at+j] = byte(rnd.Uint32())
					}
				}
				if round%20 == 7 { // more than what is kept
					for at := range mem {
						mem[at] ^= 0xff
					}
				}
				if m.Peak() != int64(used) {
					t.Errorf("peak %d, want %d", m.Peak(), used)
				}
				if err := m.Reset(); err != nil {
					t.Fatal(err)
				}
				m.Shrunk()
			}
		})
	}
}

// TestMemoriesAreApart checks that memories of one image do not see each other.
func TestMemoriesAreApart(t *testing.T) {
	for _, method := range methods(t) {
		t.Run(string(method), func(t *testing.T) {
			i, m := open(t, method, []byte("image"), image.PageSize, image.PageSize)
			other, err := i.NewMemory(image.PageSize)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			copy(m.Reallocate(image.PageSize), "guest")
			if got := string(other.Reallocate(image.PageSize)[:5]); got != "image" {
				t.Errorf("another memory reads %q", got)
			}
			if got := string(i.Content()[:5]); got != "image" {
				t.Errorf("the image became %q", got)
			}
		})
	}
}

// TestRebase: a memory is reset to what it held, in place, and the image that it was one of
// does not change.
func TestRebase(t *testing.T) {
	for _, method := range methods(t) {
		t.Run(string(method), func(t *testing.T) {
			i, m := open(t, method, []byte("image"), image.PageSize, 4*image.PageSize)
			mem := m.Reallocate(3 * image.PageSize)
			copy(mem[image.PageSize-2:], "guest")
			small, err := image.NewWith(method, nil, image.PageSize)
			if err != nil {
				t.Fatal(err)
			}
			defer small.Close()
			if m.Rebase(small) == nil {
				t.Error("it became one of an image of another size")
			}
			held, err := image.NewWith(m.Method(), mem, int64(len(mem)))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Rebase(held); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := held.Close(); err != nil {
					t.Error(err)
				}
			})
			for round := range 3 {
				mem := m.Reallocate(4 * image.PageSize)
				if string(mem[:5]) != "image" || string(mem[image.PageSize-2:][:5]) != "guest" || len(bytes.Trim(mem[image.PageSize+3:], "\x00")) > 0 {
					t.Fatalf("round %d: the memory is not as its image", round)
				}
				for at := range mem {
					mem[at] = 7
				}
				if err := m.Reset(); err != nil {
					t.Fatal(err)
				}
				m.Shrunk()
			}
			if string(i.Content()[:5]) != "image" || i.Size() != image.PageSize {
				t.Error("the first image has changed")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, method := range methods(t) {
		t.Run(string(method), func(t *testing.T) {
			i, m := open(t, method, nil, image.PageSize, 3*image.PageSize)
			if m.Reallocate(4*image.PageSize) != nil {
				t.Error("the memory grew beyond its limit")
			}
			if m.Reallocate(image.PageSize) == nil {
				t.Fatal("no memory of the size of its image")
			}
			m.Grow = func(used, size uint64) bool { return used == image.PageSize && size != 2*image.PageSize }
			if m.Reallocate(2*image.PageSize) != nil {
				t.Error("the memory grew though it was refused")
			}
			if got := len(m.Reallocate(3 * image.PageSize)); got != 3*image.PageSize {
				t.Errorf("the memory has %d bytes", got)
			}
			if _, err := i.NewMemory(0); err == nil {
				t.Error("a memory that is smaller than its image")
			}
		})
	}
	for name, size := range map[string]int64{"half a page": image.PageSize / 2, "less than the content": 0} {
		if _, err := image.New([]byte("x"), size); err == nil {
			t.Errorf("an image of %s", name)
		}
	}
}

// TestDetect checks that on a kernel which can tell, what it tells is used.
func TestDetect(t *testing.T) {
	_, err := image.NewWith(image.Scan, []byte("x"), image.PageSize)
	if got := image.Detect(); got == image.Scan && err != nil {
		t.Errorf("detected %s, which fails: %v", got, err)
	}
}

func BenchmarkReset(b *testing.B) {
	for _, method := range methods(b) {
		for _, pages := range []int{0, 1, 16, 64} {
			b.Run(string(method)+"/"+string('0'+byte(pages/10))+string('0'+byte(pages%10))+"pages", func(b *testing.B) {
				_, m := open(b, method, bytes.Repeat([]byte{1}, 2<<20), 2<<20, 4<<20)
				mem := m.Reallocate(2 << 20)
				b.ReportAllocs()
				for b.Loop() {
					for p := range pages {
						mem[p*8192]++
					}
					if err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
