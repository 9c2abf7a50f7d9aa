// The Rust crate v_queue at work in a folder, for the tests and benchmarks of ottla.queue.
//
//   push BASE QUEUE                 pushes the lines of stdin ("S 6869" or "O 6869"), answers each with the right edge
//   pop BASE QUEUE CONSUMER COUNT   pops COUNT messages, or all there are if COUNT is 0; commits; prints them like that
//   follow BASE QUEUE CONSUMER COUNT   the same, and waits for those that are not there yet
//   write BASE QUEUE                opens for writing, says so or why not, and keeps it until stdin ends
//   bench BASE COUNT BYTES          prints how many seconds COUNT pushes and COUNT pops take

use std::io::{self, BufRead, Read, Write};
use std::time::Instant;
use v_queue::consumer::Consumer;
use v_queue::queue::Queue;
use v_queue::record::{Mode, MsgType};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[1..] {
        ["push", base, queue] => push(base, queue),
        ["pop", base, queue, consumer, count] => pop(base, queue, consumer, count.parse().unwrap(), false),
        ["follow", base, queue, consumer, count] => pop(base, queue, consumer, count.parse().unwrap(), true),
        ["write", base, queue] => write(base, queue),
        ["bench", base, count, bytes] => bench(base, count.parse().unwrap(), bytes.parse().unwrap()),
        _ => panic!("see the beginning of main.rs"),
    }
}

fn push(base: &str, queue: &str) {
    let mut queue = Queue::new(base, queue, Mode::ReadWrite).expect("open");
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let kind = if line.starts_with('S') { MsgType::String } else { MsgType::Object };
        println!("{}", queue.push(&unhex(&line[2..]), kind).expect("push"));
    }
}

fn pop(base: &str, queue: &str, consumer: &str, count: usize, waits: bool) {
    let mut consumer = Consumer::new(base, consumer, queue).expect("open");
    println!("open");
    io::stdout().flush().unwrap();
    let mut popped = 0;
    while count == 0 || popped < count {
        if !consumer.pop_header() {
            if waits {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            break;
        }
        let mut body = vec![0; consumer.header.msg_length as usize];
        consumer.pop_body(&mut body).expect("pop");
        let kind = if consumer.header.msg_type == MsgType::Object { 'O' } else { 'S' };
        println!("{} {}", kind, hex(&body));
        popped += 1;
    }
    assert!(consumer.commit());
}

fn write(base: &str, queue: &str) {
    match Queue::new(base, queue, Mode::ReadWrite) {
        Ok(_queue) => {
            println!("open");
            io::stdout().flush().unwrap();
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        Err(refused) => println!("{}", refused.as_str()),
    }
}

fn bench(base: &str, count: usize, bytes: usize) {
    let mut queue = Queue::new(base, "bench", Mode::ReadWrite).expect("open");
    let mut consumer = Consumer::new(base, "bench", "bench").expect("open");
    let body = vec![b'x'; bytes];
    let began = Instant::now();
    for _ in 0..count {
        queue.push(&body, MsgType::Object).expect("push");
    }
    let pushed = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for _ in 0..count {
        assert!(consumer.pop_header());
        let mut body = vec![0; consumer.header.msg_length as usize];
        consumer.pop_body(&mut body).expect("pop");
    }
    println!("{} {}", pushed, began.elapsed().as_secs_f64());
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{:02x}", byte)).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}
