// Command engine runs SmolLM2 in plain Go with librkv as its decode attention.
//
//	engine MODEL.gguf smollm2-greedy.json
//
// At a budget that keeps everything, every token must be the one that full attention gives (the file
// says which); with a budget of 256 of 1,000 tokens the answer to the hidden fact must be the same.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// golden is one prompt and what full attention in float32 answers; margin is how far the second best
// token's logit is behind.
type golden struct {
	Name   string
	Prompt []int
	Greedy []int
	Margin []float64
}

func main() {
	if len(os.Args) != 3 {
		fmt.Println("usage: engine MODEL.gguf smollm2-greedy.json")
		os.Exit(1)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Println("engine:", err)
		os.Exit(1)
	}
}

func run(modelPath, goldenPath string) error {
	start := time.Now()
	text, err := os.ReadFile(goldenPath)
	if err != nil {
		return err
	}
	var cases []golden
	if err := json.Unmarshal(text, &cases); err != nil {
		return err
	}
	m, err := loadModel(modelPath)
	if err != nil {
		return err
	}
	prompts := make([]*prefilled, len(cases))
	longest := 0
	for i, c := range cases {
		if prompts[i], err = m.prefill(c.Prompt); err != nil {
			return err
		}
		if len(c.Prompt) > len(cases[longest].Prompt) {
			longest = i
		}
	}
	fmt.Printf("model and %d prompts: %.1f s\n", len(cases), time.Since(start).Seconds())
	for _, storage := range []struct {
		name   string
		bf16   bool
		margin float64 // a step that full attention decided by less may go the other way
	}{{"float32", false, 0.02}, {"bfloat16", true, 0.3}} {
		if err := sameAsDense(m, cases, prompts, storage.name, storage.bf16, storage.margin); err != nil {
			return err
		}
	}
	return compressed(m, cases[longest], prompts[longest])
}

// sameAsDense decodes all prompts as one batch at full budget. The golden tokens are fed, so that a
// step is judged on its own.
func sameAsDense(m *model, cases []golden, prompts []*prefilled, name string, bf16 bool, margin float64) error {
	start := time.Now()
	steps, budget := 0, 0
	for _, c := range cases {
		steps = max(steps, len(c.Greedy))
		budget = max(budget, len(c.Prompt)+len(c.Greedy))
	}
	d, err := newDecoder(m, prompts, int64(steps), int64(budget), bf16)
	if err != nil {
		return err
	}
	defer d.cache.Close()
	got := make([]int, len(cases))
	for i := range got {
		got[i] = prompts[i].next
	}
	same, near := 0, 0
	for s := 0; ; s++ {
		running := 0
		for i, c := range cases {
			switch {
			case s >= len(c.Greedy):
				d.step.Seq[i] = -1 // finished: a padding row
				got[i] = 0
				continue
			case got[i] == c.Greedy[s]:
				same++
			case c.Margin[s] < margin:
				near++
			default:
				return fmt.Errorf("%s, %s, step %d: token %d, full attention gives %d by %.3f",
					name, c.Name, s, got[i], c.Greedy[s], c.Margin[s])
			}
			got[i] = c.Greedy[s]
			running++
		}
		if running == 0 || s == steps-1 {
			break
		}
		if got, err = d.next(got); err != nil {
			return err
		}
	}
	fmt.Printf("full budget, %s: %d tokens as full attention's, %d near ties otherwise, %.1f s\n",
		name, same, near, time.Since(start).Seconds())
	return nil
}

// compressed lets RocketKV answer from a quarter of the prompt.
func compressed(m *model, c golden, p *prefilled) error {
	const budget, tokens = 256, 16
	start := time.Now()
	d, err := newDecoder(m, []*prefilled{p}, tokens, budget, false)
	if err != nil {
		return err
	}
	defer d.cache.Close()
	answer := []int{p.next}
	for len(answer) < tokens {
		following, err := d.next(answer[len(answer)-1:])
		if err != nil {
			return err
		}
		answer = append(answer, following[0])
	}
	stats, err := d.cache.Stats(0, 0)
	if err != nil {
		return err
	}
	want, got := strings.TrimSpace(m.text(c.Greedy)), strings.TrimSpace(m.text(answer))
	fmt.Printf("RocketKV t=%d, %s: kept %d of %d tokens, reads %d bytes a step and layer of %d; %q, %.1f s\n",
		budget, c.Name, stats.Kept, stats.Prompt, stats.BytesReadPerStep, stats.FullKVBytes, got,
		time.Since(start).Seconds())
	fact, _, _ := strings.Cut(want, ".") // the answer's first sentence
	if stats.Kept >= stats.Prompt || !strings.HasPrefix(got, fact) {
		return fmt.Errorf("%s: %q, full attention says %q", c.Name, got, fact)
	}
	return nil
}
