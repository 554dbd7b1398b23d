use super::*;
use crate::error::LayerName;

const MNIST: Shape = Shape { height: 28, width: 28, channels: 1 };
const CIFAR: Shape = Shape { height: 32, width: 32, channels: 3 };

fn image(layers: &[Layer]) -> Architecture {
    Architecture { input: Shape { height: 6, width: 5, channels: 2 }, layers: layers.to_vec() }
}

fn convolution(channels: usize, kernel: [usize; 2]) -> Layer {
    Layer::Convolution { channels, kernel, stride: [1, 1], padding: [0, 0] }
}

const LINEAR: Layer = Layer::Linear { units: 3 };

#[test]
fn named_architectures_have_the_stated_numbers_of_parameters() {
    for (name, input, parameters) in [
        ("mnist-mlp", MNIST, 795_010),
        ("fashion-mlp", MNIST, 269_322),
        ("small-cnn", MNIST, 102_550),
        ("cifar-cnn", CIFAR, 5_851_338),
        ("tempered-cnn", MNIST, 26_010),
        ("mlp:7", MNIST, 785 * 7 + 80),
        ("mlp: 5, 6", CIFAR, 3073 * 5 + 36 + 70),
    ] {
        let architecture = Architecture::named(name, input, 10, None).unwrap();
        assert_eq!((architecture.parameters(), architecture.classes()), (Ok(parameters), Ok(10)), "{name}");
        for activation in [Activation::Relu, Activation::Tanh] {
            let architecture = Architecture::named(name, input, 10, Some(activation)).unwrap();
            assert!(architecture.layers.iter().filter_map(Layer::activation).all(|other| other == activation));
            assert!(architecture.layers.contains(&activation.layer()));
        }
    }
}

#[test]
fn other_names_inputs_and_classes_are_refused() {
    for text in ["", "mlp", "mlp:", "mlp:1,,2", "mlp:x", "small-cnn ", "resnet"] {
        let error = Architecture::named(text, MNIST, 10, None).unwrap_err();
        assert_eq!(error, Error::UnknownArchitecture { text: text.to_owned() });
    }
    assert!(matches!(Architecture::named("small-cnn", CIFAR, 10, None), Err(Error::Data { .. })));
    assert!(matches!(Architecture::named("cifar-cnn", CIFAR, 9, None), Err(Error::Data { classes: 10, .. })));
    assert!(Architecture::named("mlp:0", MNIST, 10, None).unwrap().parameters().is_err());
}

#[test]
fn layers_that_do_not_fit_are_named_with_their_shapes() {
    let text = |layers: &[Layer]| image(layers).parameters().unwrap_err().to_string();
    assert_eq!(
        text(&[convolution(4, [7, 3]), LINEAR]),
        "layer 1 (convolution) cannot follow the input, whose output is 6 x 5 x 2: expected at least 7 x 3 pixels"
    );
    assert_eq!(
        text(&[convolution(6, [3, 3]), Layer::GroupNorm { groups: 4 }, LINEAR]),
        "layer 2 (group-norm) cannot follow layer 1 (convolution), whose output is 4 x 3 x 6: expected a number of channels that \
         4 groups divide"
    );
    assert_eq!(
        text(&[LINEAR, convolution(1, [2, 1])]),
        "layer 2 (convolution) cannot follow layer 1 (linear), whose output is 1 x 1 x 3: expected at least 2 x 1 pixels"
    );
    assert_eq!(
        text(&[Layer::Relu, Layer::Tanh, LINEAR]),
        "layer 2 (tanh) follows layer 1 (relu): two activations in a row are not supported; remove one of them"
    );
    assert_eq!(text(&[Layer::Linear { units: 0 }]), "layer 1 (linear): units = 0 must lie in [1, 2^24]");
    let last = |layers: &[Layer]| image(layers).classes().unwrap_err();
    assert_eq!(last(&[]), Error::Last { last: LayerName::INPUT });
    assert_eq!(last(&[LINEAR, Layer::Relu]), Error::Last { last: LayerName { position: 2, kind: "relu" } });
    assert!(matches!(last(&[Layer::Linear { units: 1 }]), Error::Last { .. }));
}

#[test]
fn settings_out_of_range_are_refused() {
    let pool = |size, stride| Layer::MaxPool { size, stride };
    let window = |kernel, stride, padding| Layer::Convolution { channels: 1, kernel, stride, padding };
    for (layer, setting) in [
        (Layer::GroupNorm { groups: 0 }, "groups"),
        (convolution(0, [1, 1]), "channels"),
        (window([0, 1], [1, 1], [0, 0]), "kernel"),
        (window([1, 1], [1, 0], [0, 0]), "stride"),
        (window([1, 1], [1, 1], [usize::MAX, 0]), "padding"),
        (pool([1, 0], [1, 1]), "size"),
        (pool([2, 129], [1, 1]), "size"),
        (pool([2, 2], [0, 1]), "stride"),
        (Layer::AveragePool { size: [usize::MAX, 2], stride: [1, 1] }, "size"),
    ] {
        let error = image(&[layer, LINEAR]).parameters().unwrap_err();
        assert!(matches!(error, Error::Setting { setting: found, .. } if found == setting), "{layer:?}: {error}");
    }
}

#[test]
fn nothing_overflows_and_nothing_is_too_large() {
    let largest = Layer::Linear { units: 1 << 24 };
    for layers in [
        vec![largest, largest, LINEAR],
        vec![convolution(1 << 24, [1, 1]), LINEAR],
        vec![Layer::Convolution { channels: 1, kernel: [4096; 2], stride: [1, 1], padding: [4096; 2] }, LINEAR],
        [vec![Layer::MaxPool { size: [1, 1], stride: [1, 1] }; 1024], vec![LINEAR]].concat(),
    ] {
        let error = image(&layers).parameters().unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    for input in
        [Shape { height: 0, ..MNIST }, Shape { height: usize::MAX, ..MNIST }, Architecture::rows((1 << 24) + 1)]
    {
        assert!(matches!(Architecture { input, layers: vec![LINEAR] }.parameters(), Err(Error::Input { .. })));
    }
}

#[test]
fn an_activation_is_computed_after_a_max_pool() {
    let max = Layer::MaxPool { size: [2, 2], stride: [2, 2] };
    let mean = Layer::AveragePool { size: [2, 2], stride: [2, 2] };
    let order = |layers: &[Layer]| -> Vec<(usize, Shape, Shape)> {
        let plan = image(layers).plan().unwrap();
        plan.iter().map(|planned| (planned.name.position, planned.input, planned.output)).collect()
    };
    let shape = |height, width, channels| Shape { height, width, channels };
    let (before, after, out) = (shape(6, 5, 2), shape(3, 2, 2), shape(1, 1, 3));
    assert_eq!(order(&[Layer::Tanh, max, LINEAR]), [(2, before, after), (1, after, after), (3, after, out)]);
    assert_eq!(order(&[Layer::Tanh, mean, LINEAR]), [(1, before, before), (2, before, after), (3, after, out)]);
    // Two activations would stand in a row.
    assert_eq!(order(&[Layer::Tanh, max, Layer::Relu, LINEAR])[0].0, 1);
}

#[cfg(feature = "serde")]
mod text {
    use super::*;

    const TEXT: &str = r#"
        input = [28, 28, 1]
        layers = [
            { kind = "convolution", channels = 16, kernel = [8, 8], stride = [2, 2], padding = [3, 3] },
            { kind = "tanh" },
            { kind = "max-pool", size = [2, 2], stride = [1, 1] },
            { kind = "convolution", channels = 32, kernel = [4, 4], stride = [2, 2] },
            { kind = "tanh" },
            { kind = "max-pool", size = [2, 2], stride = [1, 1] },
            { kind = "linear", units = 32 },
            { kind = "tanh" },
            { kind = "linear", units = 10 },
        ]
    "#;

    #[test]
    fn text_is_read_and_written() {
        let architecture: Architecture = toml::from_str(TEXT).unwrap();
        assert_eq!(architecture, Architecture::named("tempered-cnn", MNIST, 10, None).unwrap());
        for name in ["mnist-mlp", "small-cnn", "tempered-cnn"] {
            let architecture = Architecture::named(name, MNIST, 10, None).unwrap();
            let text = toml::to_string(&architecture).unwrap();
            assert_eq!(toml::from_str::<Architecture>(&text).unwrap(), architecture, "{text}");
        }
        let norm = "input = [4]\n[[layers]]\nkind = 'group-norm'\ngroups = 2\n[[layers]]\nkind = 'average-pool'\nsize = [1, 1]\n\
                    [[layers]]\nkind = 'linear'\nunits = 2\n[[layers]]\nkind = 'relu'";
        let architecture: Architecture = toml::from_str(norm).unwrap();
        let average = Layer::AveragePool { size: [1, 1], stride: [1, 1] };
        let layers = vec![Layer::GroupNorm { groups: 2 }, average, Layer::Linear { units: 2 }, Layer::Relu];
        assert_eq!(architecture, Architecture { input: Architecture::rows(4), layers });
    }

    #[test]
    fn other_text_is_refused_with_a_reason() {
        for (layer, reason) in [
            ("kind = 'batch-norm'", "mixes the examples of a batch"),
            ("kind = 'batch_norm'\nchannels = 3", "use `group-norm`"),
            ("kind = 'dropout'", "`dropout` is not a kind of layer"),
            ("kind = 'linear'", "kind `linear` needs the setting `units`"),
            ("kind = 'tanh'\nunits = 3", "kind `tanh` does not have the setting `units`"),
            ("kind = 'linear'\nunits = 3\nbias = false", "unknown field `bias`"),
            ("kind = 'linear'\nunits = -3", "-3"),
            ("kind = 'max-pool'\nsize = [2]", "invalid length 1"),
        ] {
            let text = format!("input = [4]\n[[layers]]\n{layer}");
            let error = toml::from_str::<Architecture>(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(toml::from_str::<Architecture>("input = [4, 4]\nlayers = []").is_err());
        assert!(toml::from_str::<Architecture>("input = [4]\nlayers = []\nclasses = 3").is_err());
    }
}
