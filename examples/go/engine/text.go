package main

import "strings"

// text turns tokens into text. The vocabulary spells bytes as printable letters, as GPT-2's does:
// those that are printable stand for themselves, the others come from U+0100 on.
func (m *model) text(ids []int) string {
	var letters strings.Builder
	for _, id := range ids {
		if id >= 0 && id < len(m.words) {
			letters.WriteString(m.words[id])
		}
	}
	var bytes []byte
	for _, letter := range letters.String() {
		if b, ok := byteOf[letter]; ok {
			bytes = append(bytes, b)
		}
	}
	return string(bytes)
}

var byteOf = func() map[rune]byte {
	of := map[rune]byte{}
	other := rune(0x100)
	for b := 0; b < 256; b++ {
		printable := b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
		if printable {
			of[rune(b)] = byte(b)
		} else {
			of[other] = byte(b)
			other++
		}
	}
	return of
}()
