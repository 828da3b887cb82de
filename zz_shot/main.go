package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/herald-social/herald/test/browser/chrome"
)

// usage: shot OUTDIR SITE LINK AXE path=name...
func main() {
	out, site, link := os.Args[1], os.Args[2], os.Args[3]
	axe, err := os.ReadFile(os.Args[4])
	if err != nil {
		panic(err)
	}
	b, err := chrome.Start(context.Background())
	if err != nil {
		panic(err)
	}
	defer b.Close()
	p, err := b.NewPage(chrome.Options{})
	if err != nil {
		panic(err)
	}
	if err := p.Open(link); err != nil {
		fmt.Println(err)
	}
	shot := func(name string) {
		for _, look := range chrome.Looks {
			if err := p.Look(look); err != nil {
				fmt.Println(err)
			}
			if v, err := p.Audit(string(axe)); err != nil {
				fmt.Println(name, look.Name, err)
			} else {
				for _, x := range v {
					fmt.Println(name, look.Name, x)
				}
			}
			data, err := p.Screenshot()
			if err != nil {
				fmt.Println(err)
			}
			_ = os.WriteFile(out+"/"+name+"-"+look.Name+".png", data, 0o644)
		}
		for _, x := range p.Forget() {
			fmt.Println(name, "PROBLEM", x)
		}
	}
	shot("link")
	if err := p.Get("button", "Sign in").Follow(); err != nil {
		fmt.Println(err)
	}
	for _, a := range os.Args[5:] {
		path, name, _ := strings.Cut(a, "=")
		if err := p.Open(site + path); err != nil {
			fmt.Println(path, err)
			continue
		}
		total, by := p.Weight()
		fmt.Println(name, total, "bytes", strings.ReplaceAll(by, "\n", "; "))
		shot(name)
	}
}
