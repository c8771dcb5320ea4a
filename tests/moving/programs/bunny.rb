# What test_libraries.py expects of every library, with Ruby's bunny. Arguments: HOST PORT delayed|plain
require "bunny"

connection = Bunny.new(host: ARGV[0], port: ARGV[1].to_i, automatically_recover: false)
connection.start
channel = connection.create_channel
queue = channel.queue("", exclusive: true)
direct = channel.default_exchange

channel.confirm_select
direct.publish("one", routing_key: queue.name)
puts "confirmed #{channel.wait_for_confirms}"

returned = Queue.new
direct.on_return { |info, _, body| returned << "#{info.reply_code} #{info.reply_text} #{body}" }
direct.publish("lost", routing_key: "no-such-queue", mandatory: true)
channel.wait_for_confirms
puts "returned #{returned.pop}"

info, = queue.pop(manual_ack: true)
channel.nack(info.delivery_tag, false, true)
info, _, body = queue.pop(manual_ack: true)
puts "redelivered #{info.redelivered?} #{body}"
channel.ack(info.delivery_tag)

10.times { |number| direct.publish(number.to_s, routing_key: queue.name) }
channel.wait_for_confirms
reader = connection.create_channel
reader.prefetch(2)
arrived = Queue.new
reading = reader.queue(queue.name, passive: true)
reading.subscribe(manual_ack: true) { |delivery, _, text| arrived << [delivery.delivery_tag, text] }
first, second = arrived.pop, arrived.pop
puts "prefetched #{first[1]} #{second[1]} of 10, waiting #{queue.message_count}"
reader.ack(second[0], true)
puts "then #{arrived.pop[1]} #{arrived.pop[1]}"
reader.close

if ARGV[2] == "delayed"
  later = channel.exchange("moving-bunny", type: "x-delayed-message", auto_delete: true,
                           arguments: { "x-delayed-type" => "direct" })
  own = channel.queue("", exclusive: true).bind(later, routing_key: "k")
  due = Queue.new
  own.subscribe { |_, _, text| due << text }
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  later.publish("late", routing_key: "k", headers: { "x-delay" => 300 })
  channel.wait_for_confirms
  text = due.pop
  puts "delayed #{text} #{Process.clock_gettime(Process::CLOCK_MONOTONIC) - started >= 0.299}"
end
connection.close
