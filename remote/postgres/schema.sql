-- The tables and functions of package remote/postgres. They may be made again, by several processes at the same time: as
-- one transaction, one after the other.

select pg_advisory_xact_lock(hashtext('remote/postgres'));

create schema if not exists coir;

-- One row for each queue. Publish locks it, so the messages of a queue are stored one statement after the other, and
-- the bound is exact. Receivers do not lock it, except to say that they wait.
create table if not exists coir.queue (
	id       bigint generated always as identity primary key,
	name     text not null unique,
	capacity integer not null,
	room     integer not null,               -- there is room for at least this number of messages
	tail     bigint not null default 0,      -- seq of the last message
	waiting  boolean not null default false, -- a receiver has found nothing since the last message
	ended    boolean not null default false
) with (fillfactor = 10);

-- The messages that have not been removed. A message is leased until due; tries is the number of its leases. Updates of
-- both change no index.
create table if not exists coir.message (
	queue  bigint not null,
	seq    bigint not null,
	sender bigint not null,
	number bigint not null,
	tries  integer not null default 0,
	due    timestamptz not null default '-infinity',
	data   bytea not null,
	primary key (queue, seq)
) with (fillfactor = 70);

-- The IDs of messages, from when they were stored until the window of the process that stored them has passed. So
-- processes may have different windows.
create table if not exists coir.id (
	queue  bigint not null,
	sender bigint not null,
	number bigint not null,
	until  timestamptz not null,
	primary key (queue, sender, number)
);
create index if not exists id_until on coir.id (until);

-- What Put has stored: the first value of each key.
create table if not exists coir.kept (
	key  text primary key,
	data bytea not null,
	at   timestamptz not null default clock_timestamp()
);

-- What is lost with the server: which nodes serve a subject, and what was sent to a node. A node is a transport. It
-- holds an advisory lock with its number for as long as it is connected.
create unlogged table if not exists coir.serving (
	subject text not null,
	node    bigint not null,
	primary key (subject, node)
);
create unlogged table if not exists coir.mail (
	node    bigint not null,
	id      bigint generated always as identity,
	kind    "char" not null, -- t told, q request, a answer, n no: the subject is not served
	sender  bigint not null, -- the node that gets the answer
	request bigint not null,
	subject text not null,
	data    bytea not null,
	primary key (node, id)
);

-- open makes a queue unless there is one, and returns its number and its capacity.
create or replace function coir.open(its_name text, wanted integer, out its_id bigint, out its_capacity integer)
language plpgsql as $$
begin
	insert into coir.queue (name, capacity, room) values (its_name, wanted, wanted) on conflict (name) do nothing;
	select id, capacity into strict its_id, its_capacity from coir.queue where name = its_name;
end $$;

-- settings returns what decides whether a commit is on a disk.
create or replace function coir.settings() returns text language sql stable as $$
	select current_setting('fsync') || ' ' || current_setting('synchronous_commit') || ' '
		|| current_setting('synchronous_standby_names')
$$;

-- publish stores messages in their order. It stores nothing if the queue was ended, or if the settings are not those
-- that are expected. A message whose ID is known is not stored again. Those for which there is no room are refused.
--
-- The IDs are remembered for some seconds.
--
-- Each statement of the function has a snapshot of its own (read committed). The first one locks the row, so the others
-- see all messages of earlier calls: a single statement would count those that were there before it waited.
create or replace function coir.publish(of_queue bigint, expected text, seconds double precision, senders bigint[],
	numbers bigint[], contents bytea[], out is_ended boolean, out now_set text, out refused integer[], out wakes boolean)
language plpgsql as $$
declare
	q     coir.queue;
	fresh integer[];
	n     integer;
begin
	select * into strict q from coir.queue where id = of_queue for update;
	is_ended := q.ended;
	now_set := coir.settings();
	refused := '{}';
	wakes := false;
	if q.ended or now_set <> expected then
		return;
	end if;
	select coalesce(array_agg(m.i order by m.i), '{}') into fresh
		from unnest(senders, numbers) with ordinality as m(sender, number, i)
		where not exists (
			select from coir.id k where k.queue = of_queue and k.sender = m.sender and k.number = m.number);
	if cardinality(fresh) > q.room then
		select greatest(q.capacity - count(*), 0) into q.room from coir.message where queue = of_queue;
		refused := fresh[q.room + 1:];
		fresh := fresh[:q.room];
	end if;
	n := cardinality(fresh);
	if n > 0 then
		insert into coir.id (queue, sender, number, until)
			select of_queue, m.sender, m.number, clock_timestamp() + make_interval(secs => seconds)
			from unnest(senders, numbers) with ordinality as m(sender, number, i) where m.i = any (fresh);
		insert into coir.message (queue, seq, sender, number, data)
			select of_queue, q.tail + row_number() over (order by m.i), m.sender, m.number, m.data
			from unnest(senders, numbers, contents) with ordinality as m(sender, number, data, i) where m.i = any (fresh);
		wakes := q.waiting;
	end if;
	if n > 0 or cardinality(refused) > 0 then
		update coir.queue set tail = q.tail + n, room = q.room - n, waiting = q.waiting and n = 0 where id = of_queue;
	end if;
end $$;

-- put stores data under a key, unless there is some, and returns what is stored. It stores nothing if the settings are
-- not those that are expected. The insert waits for another one of the same key, and the select, which has a snapshot
-- of its own, sees that.
create or replace function coir.put(its_key text, expected text, content bytea, out now_set text, out stored bytea)
language plpgsql as $$
begin
	now_set := coir.settings();
	if now_set <> expected then
		return;
	end if;
	insert into coir.kept (key, data) values (its_key, content) on conflict (key) do nothing;
	select data into strict stored from coir.kept where key = its_key;
end $$;

-- pull leases messages. A lease may be lost with the server, so its commit does not wait for the disk.
create or replace function coir.pull(of_queue bigint, credit integer, lease double precision)
returns table (seq bigint, sender bigint, number bigint, tries integer, data bytea)
language plpgsql as $$
#variable_conflict use_column
begin
	perform set_config('synchronous_commit', 'off', true);
	return query
		with next as materialized (
			select m.seq from coir.message m where m.queue = of_queue and m.due <= clock_timestamp()
			order by m.seq limit credit for update skip locked)
		update coir.message m set due = clock_timestamp() + make_interval(secs => lease), tries = m.tries + 1
		from next where m.queue = of_queue and m.seq = next.seq
		returning m.seq, m.sender, m.number, m.tries, m.data;
end $$;

-- idle notes that a receiver has found nothing. The next message that is stored wakes it; it looks once more for those
-- that were stored before. over: the queue was ended, and is empty. until_due: seconds until the next lease ends.
create or replace function coir.idle(of_queue bigint, out is_ended boolean, out over boolean,
	out until_due double precision)
language plpgsql as $$
begin
	perform set_config('synchronous_commit', 'off', true);
	update coir.queue set waiting = true where id = of_queue and not waiting;
	select ended into strict is_ended from coir.queue where id = of_queue;
	over := is_ended and not exists (select from coir.message where queue = of_queue);
	select extract(epoch from min(due) - clock_timestamp()) into until_due
		from coir.message where queue = of_queue and due > clock_timestamp();
end $$;

-- remove removes messages, and returns which are still there: another transaction has locked them.
create or replace function coir.remove(queues bigint[], seqs bigint[], out locked integer[])
language plpgsql as $$
begin
	with mine as materialized (
		select m.queue, m.seq from unnest(queues, seqs) as r(queue, seq)
		join coir.message m on m.queue = r.queue and m.seq = r.seq for update of m skip locked)
	delete from coir.message m using mine where m.queue = mine.queue and m.seq = mine.seq;
	select coalesce(array_agg(r.i), '{}') into locked
		from unnest(queues, seqs) with ordinality as r(queue, seq, i)
		join coir.message m on m.queue = r.queue and m.seq = r.seq;
end $$;

-- renew changes when leases end, unless they have ended, or another transaction has locked the message.
create or replace function coir.renew(queues bigint[], seqs bigint[], leases integer[], seconds double precision[])
returns void language plpgsql as $$
begin
	perform set_config('synchronous_commit', 'off', true);
	with mine as materialized (
		select m.queue, m.seq, r.seconds from unnest(queues, seqs, leases, seconds) as r(queue, seq, lease, seconds)
		join coir.message m on m.queue = r.queue and m.seq = r.seq and m.tries = r.lease for update of m skip locked)
	update coir.message m set due = clock_timestamp() + make_interval(secs => mine.seconds)
		from mine where m.queue = mine.queue and m.seq = mine.seq;
end $$;

-- alive reports whether a node is connected.
create or replace function coir.alive(node bigint) returns boolean language sql as $$
	select exists (
		select from pg_locks l where l.locktype = 'advisory' and l.objsubid = 1
			and l.database = (select oid from pg_database where datname = current_database())
			and l.classid = ((node >> 32) & 4294967295)::oid and l.objid = (node & 4294967295)::oid)
$$;

-- tell sends messages to all nodes that serve their subjects.
create or replace function coir.tell(subjects text[], contents bytea[]) returns void language sql as $$
	with sent as (
		insert into coir.mail (node, kind, sender, request, subject, data)
		select s.node, 't', 0, 0, s.subject, m.data
		from unnest(subjects, contents) as m(subject, data) join coir.serving s on s.subject = m.subject
		returning node)
	select pg_notify('coir_' || to_hex(node), '') from (select distinct node from sent) as to_nodes
$$;

-- ask sends a request to one of the nodes that serve a subject. It reports false if there is none.
create or replace function coir.ask(of_subject text, from_node bigint, its_number bigint, content bytea)
returns boolean language sql as $$
	with sent as (
		insert into coir.mail (node, kind, sender, request, subject, data)
		select s.node, 'q', from_node, its_number, of_subject, content
		from coir.serving s where s.subject = of_subject and coir.alive(s.node) order by random() limit 1
		returning node)
	select count(pg_notify('coir_' || to_hex(node), '')) > 0 from sent
$$;

-- answer sends answers to nodes.
create or replace function coir.answer(nodes bigint[], kinds "char"[], requests bigint[], contents bytea[])
returns void language sql as $$
	with sent as (
		insert into coir.mail (node, kind, sender, request, subject, data)
		select m.node, m.kind, 0, m.request, '', m.data
		from unnest(nodes, kinds, requests, contents) as m(node, kind, request, data)
		returning node)
	select pg_notify('coir_' || to_hex(node), '') from (select distinct node from sent) as to_nodes
$$;

-- clean forgets IDs whose time has passed, and what belongs to nodes that are gone. A node may connect and
-- register again meanwhile: so it is looked at once more when its rows are deleted.
create or replace function coir.clean() returns void language plpgsql as $$
begin
	perform set_config('synchronous_commit', 'off', true);
	with old as materialized (
		select queue, sender, number from coir.id where until < clock_timestamp() for update skip locked)
	delete from coir.id k using old where k.queue = old.queue and k.sender = old.sender and k.number = old.number;
	with gone as materialized (
		select node from (select node from coir.serving union select node from coir.mail) as all_nodes
		where not coir.alive(node)),
	silent as (delete from coir.serving s using gone where s.node = gone.node and not coir.alive(s.node))
	delete from coir.mail m using gone where m.node = gone.node;
end $$;
