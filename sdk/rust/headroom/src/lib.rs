//! Datasource plugins for Headroom in Rust. An author writes two types and one line, and nothing unsafe:
//!
//! ```
//! use headroom::{Datasource, Field, Host, Opt, Options, Reader, Result, Sample};
//!
//! struct Counting { samples: u64 }
//! struct CountingReader;
//!
//! impl Datasource for Counting {
//!     type Reader = CountingReader;
//!     fn options() -> Vec<Opt> {
//!         vec![Opt::i64("samples").default(100).min(1).help("samples in all")]
//!     }
//!     fn open(_host: &Host, options: &Options) -> Result<Self> {
//!         Ok(Counting { samples: options.i64("samples")? as u64 })
//!     }
//!     fn fields(&self) -> Vec<Field> { vec![Field::f32("x", &[1])] }
//!     fn length(&self, _split: u32) -> u64 { self.samples }
//!     fn reader(&self) -> Result<CountingReader> { Ok(CountingReader) }
//! }
//!
//! impl Reader<Counting> for CountingReader {
//!     fn read(&mut self, _source: &Counting, sample: &mut Sample) -> Result<()> {
//!         let index = sample.index();
//!         sample.slot::<f32>(0)?.fill(index as f32);
//!         Ok(())
//!     }
//! }
//!
//! headroom::headroom_datasource!(Counting);
//! ```
//!
//! The macro takes the plugin's id, version and summary from the package's name, version and description in Cargo.toml.
//! An error becomes a status and a sentence, and a panic a bug of the plugin with the panic's message. Files in HDF5 are
//! read by the host: [`Array`].

pub mod abi;
mod array;
mod attribute;
pub mod draws;
mod error;
mod field;
mod files;
mod guard;
mod host;
mod memory;
mod option;
mod options;
#[doc(hidden)]
pub mod plugin;
mod sample;
mod source;
mod table;
mod text;

pub use array::{Array, ArrayInfo, ArrayMember, Target};
pub use attribute::Attribute;
pub use error::{invalid, Error, Result, Status};
pub use field::{Channel, DType, Element, Field};
pub use files::Entry;
pub use host::Host;
pub use memory::Scratch;
pub use option::Opt;
pub use options::Options;
pub use sample::Sample;
pub use source::{Datasource, Group, Origin, Reader};
