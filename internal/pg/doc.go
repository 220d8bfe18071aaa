// Package pg connects a gateway to the PostgreSQL database that it shares with others: a pool,
// the schema and its steps, and a lease by which each gateway has its name for itself.
//
// What is wrong with a database is found when it is opened, and each error says what to do.
// Moments are those of the database, by clock_timestamp: the clocks of gateways may differ.
package pg
