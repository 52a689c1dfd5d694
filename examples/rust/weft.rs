//! A compiled model in Rust: the part of `include/weft_model.h` that a call needs, and a safe type over it.
//! Fields behind those that are written here are not read, so that later versions of the table fit, too.
use std::ffi::{c_char, c_void, CStr};

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}
pub const F32: DType = DType { code: 2, bits: 32, lanes: 1 };

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Status {
    code: i32,
    message: [c_char; 508],
}

#[repr(C)]
struct Sizes {
    workspace_bytes: u64,
    entry: u32,
    nslot: u32,
}

#[repr(C)]
struct TensorInfo {
    name: *const c_char,
    dtype: DType,
    rank: u32,
}

#[repr(C)]
struct Entry {
    size: u32,
    flags: u32,
    name: *const c_char,
    ninput: u32,
    noutput: u32,
    nsymbol: u32,
    ncall: u32,
    input: *const u8,
    output: *const u8,
    symbol: *const c_void,
    call: *const c_void,
    seen: *const i64,
    state_use: *const u8,
    flops: f64,
    sizes_bytes: u64,
}

enum Instance {}

/// WeftModel. Its functions do not change the table.
#[repr(C)]
pub struct Table {
    size: u32,
    abi: u32,
    stride: [u32; 16],
    manifest: *const c_void,
    nentry: u32,
    nparam: u32,
    entry: *const *const Entry,
    param: *const c_void,
    replaceable: u32,
    nstate: u32,
    state: *const c_void,
    state_bytes: u64,
    weights: *const c_void,
    weights_file: *const c_char,
    weights_hash: *const c_char,
    weights_bytes: u64,
    user_ops: *const c_char,
    open: unsafe extern "C" fn(*const Table, *const c_void, *mut *mut Instance, *mut Status) -> i32,
    close: unsafe extern "C" fn(*mut Instance),
    sizes: unsafe extern "C" fn(*const Instance, u32, *const Tensor, *mut Sizes, *mut Status) -> i32,
    run: unsafe extern "C" fn(*mut Instance, *const Sizes, *const Tensor, *mut Tensor, *mut c_void, *const c_void, *mut Status) -> i32,
}
const ABI: u32 = 3;
const TENSOR_INFO: usize = 1; // WeftStruct
const DATA_SIZES: u32 = 4; // WEFT_ENTRY_DATA_SIZES

/// What the model says: a code of weft_model.h and a sentence.
#[derive(Debug)]
pub struct Error {
    pub code: i32,
    pub message: String,
}

fn told(code: i32, status: &Status) -> Error {
    let message = unsafe { CStr::from_ptr(status.message.as_ptr()) }.to_string_lossy().into_owned();
    Error { code, message }
}

/// An open model. Several threads may call it at the same time.
pub struct Model {
    table: &'static Table,
    instance: *mut Instance,
}
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

/// A result of f32, row-major.
pub struct Array {
    pub shape: Vec<i64>,
    pub data: Vec<f32>,
}

impl Model {
    /// Opens the model that the function weft_model of a linked file returns.
    ///
    /// # Safety
    /// The table is one that weft_model of a compiled model returned, and the file stays loaded.
    pub unsafe fn open(table: *const Table) -> Result<Model, Error> {
        let table = unsafe { table.as_ref() }.filter(|t| t.abi == ABI).ok_or(Error { code: 7, message: "a model of another version".into() })?;
        let mut status = Status { code: 0, message: [0; 508] };
        let mut instance = std::ptr::null_mut();
        match unsafe { (table.open)(table, std::ptr::null(), &mut instance, &mut status) } {
            0 => Ok(Model { table, instance }),
            code => Err(told(code, &status)),
        }
    }

    fn info(&self, first: *const u8, k: u32) -> &TensorInfo {
        unsafe { &*(first.add(k as usize * self.table.stride[TENSOR_INFO] as usize) as *const TensorInfo) }
    }

    /// Runs the first entry on arrays of f32: (elements, shape) for each input, in the model's order.
    pub fn call(&self, inputs: &[(&[f32], &[i64])]) -> Result<Vec<Array>, Error> {
        let entry = unsafe { &**self.table.entry };
        let wrong = |message: String| Err(Error { code: 1, message });
        if inputs.len() != entry.ninput as usize {
            return wrong(format!("the entry has {} inputs, and the call has {}", entry.ninput, inputs.len()));
        }
        if entry.flags & DATA_SIZES != 0 || (0..entry.noutput).any(|k| self.info(entry.output, k).dtype != F32) {
            return wrong("a result of another dtype than f32, or of a size that depends on data".into());
        }
        let tensor = |data: *const f32, shape: &[i64]| Tensor {
            data: data as *mut c_void,
            device: Device { kind: 1, id: 0 },
            ndim: shape.len() as i32,
            dtype: F32,
            shape: shape.as_ptr() as *mut i64,
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        for (data, shape) in inputs {
            let count = shape.iter().try_fold(1i64, |n, &d| if d < 0 { None } else { n.checked_mul(d) });
            if count != Some(data.len() as i64) {
                return wrong(format!("{} elements for the shape {:?}", data.len(), shape));
            }
        }
        let x: Vec<Tensor> = inputs.iter().map(|(data, shape)| tensor(data.as_ptr(), shape)).collect();
        let mut status = Status { code: 0, message: [0; 508] };
        let mut memory = vec![0i64; entry.sizes_bytes as usize / 8 + 1];
        let sizes = memory.as_mut_ptr() as *mut Sizes;
        let code = unsafe { (self.table.sizes)(self.instance, 0, x.as_ptr(), sizes, &mut status) };
        if code != 0 {
            return Err(told(code, &status));
        }
        let mut at = 2 + entry.nsymbol as usize; // WeftSizes.slot: symbols, then the extents of the outputs
        let mut results: Vec<Array> = (0..entry.noutput)
            .map(|k| {
                let rank = self.info(entry.output, k).rank as usize;
                let shape = memory[at..at + rank].to_vec();
                at += rank;
                Array { data: vec![0.0; shape.iter().product::<i64>() as usize], shape }
            })
            .collect();
        let mut y: Vec<Tensor> = results.iter_mut().map(|r| tensor(r.data.as_mut_ptr(), &r.shape)).collect();
        let bytes = unsafe { (*(memory.as_ptr() as *const Sizes)).workspace_bytes };
        let mut work = vec![0u8; bytes as usize + 1];
        let sizes = memory.as_ptr() as *const Sizes;
        let run = self.table.run;
        let code = unsafe { run(self.instance, sizes, x.as_ptr(), y.as_mut_ptr(), work.as_mut_ptr() as *mut c_void, std::ptr::null(), &mut status) };
        if code != 0 {
            return Err(told(code, &status));
        }
        Ok(results)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { (self.table.close)(self.instance) }
    }
}
