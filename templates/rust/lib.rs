//! my_source: a datasource plugin. Here recordings that are computed; read your own files in their place (headroom::Array
//! reads HDF5 through the host). headroom::Datasource lists every method that the type may have.
#![deny(unsafe_code)]

use headroom::draws::{normal, sample_key, site};
use headroom::{Datasource, Field, Group, Host, Opt, Options, Reader, Result, Sample};

const INPUTS: usize = 4;

struct MySource {
    recordings: u64,
    samples: u64,
    noise: f64,
}

/// What one thread reads with: buffers and open files go here.
struct MyReader;

impl Datasource for MySource {
    type Reader = MyReader;

    // The keys of [data.options].
    fn options() -> Vec<Opt> {
        vec![
            Opt::i64("recordings").default(20).min(2).help("recordings, which stay in one split each"),
            Opt::i64("samples").default(50).min(1).help("samples of a recording"),
            Opt::f64("noise").default(0.05).min(0).help("standard deviation of what is added to y"),
        ]
    }

    fn open(_host: &Host, options: &Options) -> Result<Self> {
        Ok(MySource {
            recordings: options.i64("recordings")? as u64,
            samples: options.i64("samples")? as u64,
            noise: options.f64("noise")?,
        })
    }

    // What every sample holds.
    fn fields(&self) -> Vec<Field> {
        vec![
            Field::f32("x", &[INPUTS]).axes(&["channel"]).channel_axis(0).normalize(),
            Field::f32("y", &[1]),
        ]
    }

    fn length(&self, _split: u32) -> u64 {
        self.recordings * self.samples
    }

    // Samples of one recording belong to one split.
    fn groups(&self, _split: u32) -> Vec<Group> {
        (0..self.recordings)
            .map(|i| Group { name: format!("recording_{}", i), first: i * self.samples, count: self.samples })
            .collect()
    }

    // A read draws nothing from the sample's key, so the host may keep what it read.
    fn augments(&self) -> bool {
        false
    }

    fn reader(&self) -> Result<MyReader> {
        Ok(MyReader)
    }
}

impl Reader<MySource> for MyReader {
    // A pure function of the data, the index and the key: it may run on any thread, for any samples at once.
    fn read(&mut self, source: &MySource, sample: &mut Sample) -> Result<()> {
        let key = sample_key(/* seed: */ 1, sample.split(), /* epoch: */ 0, sample.index());
        // Empty where the host does not want the field.
        let x = sample.slot::<f32>(0)?;
        let mut y = source.noise * normal(key, site("noise"), 0);
        for channel in 0..INPUTS {
            let value = normal(key, site("x"), channel as u64);
            y += value.sin() * (channel + 1) as f64;
            if let Some(place) = x.get_mut(channel) {
                *place = value as f32;
            }
        }
        sample.slot::<f32>(1)?.fill(y as f32);
        Ok(())
    }
}

headroom::headroom_datasource!(MySource);
