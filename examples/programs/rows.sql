-- 60 000 rows, an index, two questions.
create table t(a integer primary key, b text, c real, d text);
with recursive n(i) as (select 1 union all select i+1 from n where i<60000) insert into t select i, 'row number ' || (i*7919 % 10007), i*1.5, hex(i*104729) from n;
create index tb on t(b, c);
select count(*), sum(c), min(b), max(b) from t where b like 'row number 1%';
select d, count(*) from t group by d % 97 order by 2 desc limit 3;
