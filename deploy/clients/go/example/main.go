// Scores the ads of adrel's README and prints id, score and status of each.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"example.com/adrel"
)

func main() {
	client := adrel.New(os.Args[1], 250*time.Millisecond)
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
