-- Fills a database in memory and asks it questions: a program for `metes tune`.
-- sqlite3 :memory: ".read examples/sqlite/orders.sql"
create table customers(id integer primary key, name text, city text);
create table orders(id integer primary key, customer integer, item text, price real);

with recursive n(i) as (select 1 union all select i + 1 from n where i < 800)
insert into customers select i, 'customer ' || (i * 7919 % 10007), 'city ' || (i % 37) from n;

with recursive n(i) as (select 1 union all select i + 1 from n where i < 8000)
insert into orders select i, 1 + i * 31 % 800, 'item ' || (i * 104729 % 499), (i * 37 % 1000) / 10.0 from n;

create index orders_by_customer on orders(customer);
create index orders_by_item on orders(item, price);

select city, count(*), round(sum(price), 2) from orders
    join customers on customers.id = orders.customer
    group by city order by sum(price) desc limit 5;

select item, count(*) as sold, group_concat(distinct customer % 7) from orders
    group by item having sold > 15 order by sold desc, item limit 5;

update orders set price = price * 1.1 where item like 'item 1%';
delete from orders where id % 3 = 0;
select count(*), round(sum(price), 2), max(length(item)) from orders;
vacuum;
