// Pi by many ranks: each integrates a part of the circle; and a ring, in which each rank passes on what it gets.
use pamir_mpi::{init, Op};

const STEPS: i64 = 1_000_000;

fn main() {
    let mpi = init();
    let world = mpi.world();
    let (rank, size) = (world.rank(), world.size());

    let part: f64 = (0..STEPS)
        .skip(rank as usize)
        .step_by(size as usize)
        .map(|step| (step as f64 + 0.5) / STEPS as f64)
        .map(|x| 4.0 / (1.0 + x * x))
        .sum();
    let mut pi = [0.0];
    world.allreduce(&[part / STEPS as f64], &mut pi, Op::Sum);

    let mut token = [0_i32; 3];
    let status = world.exchange(&[rank; 2], (rank + 1) % size, &mut token, (rank + size - 1) % size, 7);
    println!("rank {rank} of {size}: pi {:.6}, {} numbers from rank {}: {}", pi[0], status.count, status.source, token[0]);

    let halves = world.split(rank % 2, rank);
    let mut members = vec![0; halves.size() as usize];
    halves.allgather(&[rank], &mut members);
    halves.barrier();
    println!("rank {rank}: with {members:?}");
}
