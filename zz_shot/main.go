package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
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
	berlin, _ := time.LoadLocation("Europe/Berlin")
	me := web.Site{Page: p, URL: site, Zone: berlin}
	do := func(what string, err error) {
		if err != nil {
			fmt.Println("FLOW", what, err)
			data, _ := p.Screenshot()
			_ = os.WriteFile(out+"/failed-"+strings.ReplaceAll(what, " ", "-")+".png", data, 0o644)
			return
		}
		fmt.Println("flow ok:", what)
	}
	if os.Getenv("FLOW") != "" {
		do("compose", me.Compose(web.Draft{Kind: web.Image, Text: "A picture of the day #nice @herald", Files: []string{"/tmp/one.png", "/tmp/two.jpg"},
			Targets: []web.Target{{Platform: "x", Account: "X, @"}, {Platform: "instagram", Account: "Instagram"}, {Platform: "tiktok", Account: "TikTok"}}}))
		_ = p.Settle()
		shot("composed")
		do("publish", me.Publish())
		time.Sleep(4 * time.Second)
		shot("published")
		do("compose thread", me.Compose(web.Draft{Kind: web.Tree, Parts: []string{"First part of the thread", "Second part", "Third part, which ends it"}, Targets: []web.Target{{Platform: "x", Account: "X, @"}, {Platform: "threads", Account: "Threads"}}}))
		_ = p.Settle()
		shot("thread")
		do("schedule", me.Schedule(time.Now().Add(30*time.Hour)))
		shot("scheduled")
		do("cancel", me.Cancel())
		do("compose draft", me.Compose(web.Draft{Kind: web.Text, Text: "A draft", Targets: []web.Target{{Platform: "x", Account: "X, @", Text: "A draft for X"}}}))
		do("save", me.SaveDraft())
		do("edit", me.Edit())
		shot("edit")
		do("publish draft", me.Publish())
		do("keys", me.Keys())
		_, err := me.MakeKey("the newsletter")
		do("make key", err)
		shot("madekey")
		do("revoke", me.RevokeKey("the newsletter"))
		do("accounts", me.Accounts())
		do("connect", me.Connect("x", "@herald_demo"))
		shot("connected")
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
