//! What an author implements.

use crate::error::Result;
use crate::field::Field;
use crate::host::Host;
use crate::option::Opt;
use crate::options::Options;
use crate::sample::Sample;
use std::path::PathBuf;

/// Consecutive samples that must stay in one split: a recording, a session, a clip.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub first: u64,
    pub count: u64,
}

/// A dataset that a field is read from as it is stored. hr_datasource.origin in abi.h says what naming one promises.
#[derive(Clone, Debug)]
pub struct Origin {
    pub file: PathBuf,
    pub dataset: String,
    /// "": the plain elements.
    pub member: String,
}

/// Data, immutable once open: all threads share it. fields(), splits(), length(), groups(), files() and origins() are
/// called once, after open().
pub trait Datasource: Sized + Send + Sync + 'static {
    type Reader: Reader<Self>;

    /// The keys of [data.options].
    fn options() -> Vec<Opt> {
        Vec::new()
    }
    /// Reads metadata only.
    fn open(host: &Host, options: &Options) -> Result<Self>;
    /// What every sample holds. A slot goes by the place of its field here.
    fn fields(&self) -> Vec<Field>;
    /// "train", "val", "test" where the layout defines splits; one split "all", and the host divides its groups.
    fn splits(&self) -> Vec<String> {
        vec!["all".to_string()]
    }
    /// The number of samples of a split.
    fn length(&self, split: u32) -> u64;
    /// They tile [0, length) in order. Empty: each sample is its own group.
    fn groups(&self, split: u32) -> Vec<Group> {
        let _ = split;
        Vec::new()
    }
    /// The files whose content samples depend on: the host identifies the data by them.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// The memory that a sample needs, relative to others. From any thread.
    fn cost(&self, split: u32, index: u64) -> f64 {
        let _ = (split, index);
        1.0
    }
    /// false: reading draws nothing from keys, so the host may keep training samples in its cache.
    fn augments(&self) -> bool {
        true
    }
    /// The datasets of a field that the host is to standardise.
    fn origins(&self, field: usize) -> Vec<Origin> {
        let _ = field;
        Vec::new()
    }
    /// What one thread reads with. From any thread.
    fn reader(&self) -> Result<Self::Reader>;
}

/// Reads samples of one open source, one at a time; it may keep buffers and open arrays between them.
pub trait Reader<Source>: Send + 'static {
    /// Fills all slots of a sample. A pure function of the data, the sample's index, key and augment(): what was read
    /// before, and on which thread, must not matter. `Status::DataCorrupt`: the host may skip the sample and go on.
    fn read(&mut self, source: &Source, sample: &mut Sample) -> Result<()>;
}
