// Scores the README's ads and prints id, score and status.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"example.com/adrel"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8000", "where the service is")
	timeout := flag.Duration("timeout", 250*time.Millisecond, "for the whole call")
	flag.Parse()
	client, err := adrel.New(*url, *timeout)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.ScoreOrFallback(context.Background(), adrel.Request{
		Query: "best running shoes for marathons",
		Ads: []adrel.Ad{
			{ID: "A", Title: "Nike Marathon Elite Shoes - 20% Off"},
			{ID: "B", Title: "Running Gear for Beginners", Description: "Shirts, shorts and socks"},
			{ID: "C", Text: "Cheap Printer Ink Outlet"},
		},
	}, func(query string, ad adrel.Ad) float64 { return 0.1 })
	if err != nil {
		log.Fatal(err)
	}
	for _, ad := range answer.Scores {
		fmt.Println(ad.ID, *ad.Score, ad.Status)
	}
}
