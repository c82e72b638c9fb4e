// A KafkaJS consumer that knows nothing of us: what plain_consumer.py is for librdkafka, with the same arguments and log.
const fs = require('fs')
const { Kafka, logLevel } = require('kafkajs')

const options = Object.fromEntries(process.argv.slice(2).map(text => text.split('=')))
const name = process.env.TAILPACK_REPLICA
const log = fs.openSync(`${process.env.LOG_FOLDER}/${name}.${process.pid}`, 'w')
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1000)
const say = (kind, ...numbers) => fs.writeSync(log, `${now()} ${kind} ${numbers.join(' ')}\n`)

const kafka = new Kafka({
  clientId: name, brokers: options['bootstrap.servers'].split(','), logLevel: logLevel.ERROR
})
const consumer = kafka.consumer({
  groupId: options['group.id'], maxWaitTimeInMs: 100,
  heartbeatInterval: Number(options['heartbeat.interval.ms']), sessionTimeout: Number(options['session.timeout.ms'])
})
let owned = []
consumer.on(consumer.events.GROUP_JOIN, event => {
  owned = event.payload.memberAssignment[options.topic] || []
  say('A', ...owned)
})
consumer.on(consumer.events.REBALANCING, () => say('R', ...owned))
process.on('SIGTERM', () => consumer.disconnect().then(() => process.exit(0)))

const run = async () => {
  await consumer.connect()
  await consumer.subscribe({ topics: [options.topic], fromBeginning: true })
  await consumer.run({ eachMessage: async ({ partition, message }) => say('E', partition, message.offset) })
}
run()
