//! Classify two rows by a compiled network, in Rust:
//!
//!     weft compile net.pt2 -o libnet.so
//!     rustc -O predict.rs -L . -l net && LD_LIBRARY_PATH=. ./predict
mod weft;

extern "C" {
    fn weft_model() -> *const weft::Table;
}

fn main() -> Result<(), weft::Error> {
    let net = unsafe { weft::Model::open(weft_model()) }?;
    let x = [0.5, -1.0, 0.25, 2.0, 1.0, 1.0, -1.0, 0.0];
    let y = net.call(&[(&x, &[2, 4])])?;
    for row in y[0].data.chunks(3) {
        println!("{:.4} {:.4} {:.4}", row[0], row[1], row[2]);
    }
    let wrong = net.call(&[(&x, &[4, 2])]).err().expect("a shape that the model refuses");
    println!("{}: {}", wrong.code, wrong.message);
    Ok(())
}
