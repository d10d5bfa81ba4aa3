//! MPI for programs in Rust that pamir runs: `rustc --target wasm32-wasi`, then `pamir run -n 4 program.wasm`.
//! Each function of `ffi` is an import that pamir provides. An error ends the rank, with a line that says why: so none returns one.
#![no_std]

/// What `mpi.h` declares, as far as this crate calls it. Handles are those of MPI 5.0's binary interface.
pub mod ffi {
    #[link(wasm_import_module = "mpi")]
    extern "C" {
        pub fn MPI_Init(count: *mut i32, arguments: *mut *mut *mut u8) -> i32;
        pub fn MPI_Finalize() -> i32;
        pub fn MPI_Abort(comm: i32, code: i32) -> i32;
        pub fn MPI_Comm_rank(comm: i32, rank: *mut i32) -> i32;
        pub fn MPI_Comm_size(comm: i32, size: *mut i32) -> i32;
        pub fn MPI_Comm_dup(comm: i32, new: *mut i32) -> i32;
        pub fn MPI_Comm_split(comm: i32, color: i32, key: i32, new: *mut i32) -> i32;
        pub fn MPI_Comm_free(comm: *mut i32) -> i32;
        pub fn MPI_Send(data: *const u8, count: i32, kind: i32, to: i32, tag: i32, comm: i32) -> i32;
        pub fn MPI_Recv(data: *mut u8, count: i32, kind: i32, from: i32, tag: i32, comm: i32, status: *mut i32) -> i32;
        pub fn MPI_Sendrecv(
            data: *const u8, count: i32, kind: i32, to: i32, tag: i32,
            into: *mut u8, most: i32, into_kind: i32, from: i32, from_tag: i32,
            comm: i32, status: *mut i32,
        ) -> i32;
        pub fn MPI_Get_count(status: *const i32, kind: i32, count: *mut i32) -> i32;
        pub fn MPI_Barrier(comm: i32) -> i32;
        pub fn MPI_Bcast(data: *mut u8, count: i32, kind: i32, root: i32, comm: i32) -> i32;
        pub fn MPI_Reduce(data: *const u8, into: *mut u8, count: i32, kind: i32, op: i32, root: i32, comm: i32) -> i32;
        pub fn MPI_Allreduce(data: *const u8, into: *mut u8, count: i32, kind: i32, op: i32, comm: i32) -> i32;
        pub fn MPI_Gather(
            data: *const u8, count: i32, kind: i32, into: *mut u8, each: i32, into_kind: i32, root: i32, comm: i32,
        ) -> i32;
        pub fn MPI_Allgather(
            data: *const u8, count: i32, kind: i32, into: *mut u8, each: i32, into_kind: i32, comm: i32,
        ) -> i32;
        pub fn MPI_Wtime() -> f64;
    }
}

/// A rank that stands for any, as the origin of a receive.
pub const ANY_SOURCE: i32 = -1;
/// A tag that stands for any, of a receive.
pub const ANY_TAG: i32 = -2;

const COMM_WORLD: i32 = 0x101;
const STATUS_WORDS: usize = 8;

/// A type whose elements MPI sends.
///
/// # Safety
/// `TYPE` is the handle of a datatype with the bytes of the type, and any bytes are a value of it.
pub unsafe trait Data: Copy {
    const TYPE: i32;
}

macro_rules! data {
    ($($name:ty = $handle:literal),*) => { $(unsafe impl Data for $name { const TYPE: i32 = $handle; })* };
}
data!(i8 = 0x240, u8 = 0x241, i16 = 0x248, u16 = 0x249, i32 = 0x250, u32 = 0x251, i64 = 0x258, u64 = 0x259, f32 = 0x210, f64 = 0x214);

/// How a reduction combines elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Product = 0x24,
    And = 0x28,
    Or = 0x29,
    Xor = 0x2a,
}

/// What was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    /// Elements.
    pub count: usize,
}

/// MPI, from `init()` on. It ends where this is dropped.
pub struct Mpi {
    _private: (),
}

/// Begins MPI: once in a program.
pub fn init() -> Mpi {
    unsafe { ffi::MPI_Init(core::ptr::null_mut(), core::ptr::null_mut()) };
    Mpi { _private: () }
}

impl Mpi {
    /// The communicator of all ranks.
    pub fn world(&self) -> Communicator<'_> {
        Communicator { handle: COMM_WORLD, _mpi: self }
    }

    /// Seconds since a fixed moment.
    pub fn time(&self) -> f64 {
        unsafe { ffi::MPI_Wtime() }
    }

    /// Ends all ranks.
    pub fn abort(&self, code: i32) -> ! {
        unsafe { ffi::MPI_Abort(COMM_WORLD, code) };
        unreachable!()
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        unsafe { ffi::MPI_Finalize() };
    }
}

/// Ranks that talk to each other. Its members call the collective operations in the same order.
pub struct Communicator<'mpi> {
    handle: i32,
    _mpi: &'mpi Mpi,
}

fn length<T>(data: &[T]) -> i32 {
    i32::try_from(data.len()).expect("more elements than MPI counts")
}

fn at<T>(data: &[T]) -> *const u8 {
    data.as_ptr().cast()
}

fn into<T>(data: &mut [T]) -> *mut u8 {
    data.as_mut_ptr().cast()
}

fn status_of<T: Data>(words: &[i32; STATUS_WORDS]) -> Status {
    let mut count = 0;
    unsafe { ffi::MPI_Get_count(words.as_ptr(), T::TYPE, &mut count) };
    // A part of an element is none.
    Status { source: words[0], tag: words[1], count: usize::try_from(count).unwrap_or(0) }
}

impl<'mpi> Communicator<'mpi> {
    pub fn rank(&self) -> i32 {
        let mut rank = 0;
        unsafe { ffi::MPI_Comm_rank(self.handle, &mut rank) };
        rank
    }

    pub fn size(&self) -> i32 {
        let mut size = 0;
        unsafe { ffi::MPI_Comm_size(self.handle, &mut size) };
        size
    }

    /// The ranks of the same color, in the order of their keys. All members call it.
    pub fn split(&self, color: i32, key: i32) -> Communicator<'mpi> {
        assert!(color >= 0, "the color is {color}, not a number from 0");
        let mut handle = 0;
        unsafe { ffi::MPI_Comm_split(self.handle, color, key, &mut handle) };
        Communicator { handle, _mpi: self._mpi }
    }

    /// A communicator of the same ranks, whose messages are apart. All members call it.
    pub fn duplicate(&self) -> Communicator<'mpi> {
        let mut handle = 0;
        unsafe { ffi::MPI_Comm_dup(self.handle, &mut handle) };
        Communicator { handle, _mpi: self._mpi }
    }

    /// Returns once `data` may be changed.
    pub fn send<T: Data>(&self, data: &[T], to: i32, tag: i32) {
        unsafe { ffi::MPI_Send(at(data), length(data), T::TYPE, to, tag, self.handle) };
    }

    /// Waits for a message of at most as many elements as `data` has. `from` may be `ANY_SOURCE`, `tag` `ANY_TAG`.
    pub fn receive<T: Data>(&self, data: &mut [T], from: i32, tag: i32) -> Status {
        let mut words = [0; STATUS_WORDS];
        let count = length(data);
        unsafe { ffi::MPI_Recv(into(data), count, T::TYPE, from, tag, self.handle, words.as_mut_ptr()) };
        status_of::<T>(&words)
    }

    /// A send and a receive at once: so a ring of ranks does not wait for itself.
    pub fn exchange<T: Data>(&self, data: &[T], to: i32, received: &mut [T], from: i32, tag: i32) -> Status {
        let mut words = [0; STATUS_WORDS];
        let most = length(received);
        unsafe {
            ffi::MPI_Sendrecv(
                at(data), length(data), T::TYPE, to, tag,
                into(received), most, T::TYPE, from, tag,
                self.handle, words.as_mut_ptr(),
            )
        };
        status_of::<T>(&words)
    }

    /// Returns once all members have called it.
    pub fn barrier(&self) {
        unsafe { ffi::MPI_Barrier(self.handle) };
    }

    /// All members get what `root` has in `data`.
    pub fn broadcast<T: Data>(&self, data: &mut [T], root: i32) {
        let count = length(data);
        unsafe { ffi::MPI_Bcast(into(data), count, T::TYPE, root, self.handle) };
    }

    /// All members get the combination of all vectors. `And`, `Or` and `Xor` are for integers.
    pub fn allreduce<T: Data>(&self, data: &[T], result: &mut [T], op: Op) {
        assert_eq!(data.len(), result.len(), "both vectors of a reduction have the same length");
        unsafe { ffi::MPI_Allreduce(at(data), into(result), length(data), T::TYPE, op as i32, self.handle) };
    }

    /// The same for `root` alone: the others' `result` stays as it is.
    pub fn reduce<T: Data>(&self, data: &[T], result: &mut [T], op: Op, root: i32) {
        assert_eq!(data.len(), result.len(), "both vectors of a reduction have the same length");
        unsafe { ffi::MPI_Reduce(at(data), into(result), length(data), T::TYPE, op as i32, root, self.handle) };
    }

    /// All members get the vectors of all, in the order of ranks: `all` has `size()` times as many elements.
    pub fn allgather<T: Data>(&self, data: &[T], all: &mut [T]) {
        let each = length(data);
        assert_eq!(all.len(), data.len() * self.size() as usize, "all vectors have the same length");
        unsafe { ffi::MPI_Allgather(at(data), each, T::TYPE, into(all), each, T::TYPE, self.handle) };
    }

    /// The same for `root` alone: the others may give an empty `all`.
    pub fn gather<T: Data>(&self, data: &[T], all: &mut [T], root: i32) {
        let each = length(data);
        let whole = data.len() * self.size() as usize;
        assert!(self.rank() != root || all.len() == whole, "all vectors have the same length");
        unsafe { ffi::MPI_Gather(at(data), each, T::TYPE, into(all), each, T::TYPE, root, self.handle) };
    }
}

impl Drop for Communicator<'_> {
    fn drop(&mut self) {
        if self.handle != COMM_WORLD {
            unsafe { ffi::MPI_Comm_free(&mut self.handle) };
        }
    }
}
